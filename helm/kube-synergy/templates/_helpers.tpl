{{/*
Names are the same whatever the release is called: pods name their scheduler, workers their PriorityClass and the
cluster its default policy, so there is one installation in a cluster.
*/}}

{{- define "kube-synergy.labels" -}}
app.kubernetes.io/name: kube-synergy
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{/* Arguments: the root context and the component's name. */}}
{{- define "kube-synergy.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: kube-synergy
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* An image of this project. Arguments: the root context and the component's name. */}}
{{- define "kube-synergy.image" -}}
{{- $root := index . 0 -}}
{{- with ($root.Values.global).imageRegistry | default $root.Values.image.registry }}{{ . }}/{{ end -}}
kube-synergy-{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{/*
The kube-scheduler. A distribution's suffix of the cluster's version, such as -gke.100 or +k3s1, is no part of the tag.
*/}}
{{- define "kube-synergy.schedulerImage" -}}
{{- if .Values.scheduler.image -}}
{{ .Values.scheduler.image }}
{{- else -}}
{{- $version := semver .Capabilities.KubeVersion.Version -}}
{{ (.Values.global).imageRegistry | default "registry.k8s.io" }}/kube-scheduler:v{{ $version.Major }}.{{ $version.Minor }}.{{ $version.Patch }}
{{- end -}}
{{- end }}

{{- define "kube-synergy.extenderHost" -}}
kube-synergy-extender.{{ .Release.Namespace }}.svc
{{- end }}

{{- define "kube-synergy.extenderSecret" -}}
{{ .Values.tls.extenderSecret | default "kube-synergy-extender-tls" }}
{{- end }}

{{- define "kube-synergy.schedulerSecret" -}}
{{ .Values.tls.schedulerSecret | default "kube-synergy-scheduler-tls" }}
{{- end }}

{{/*
What every pod has in its spec. Arguments: the root context, the component's name, which is its values' key, and the
name of its service account without the prefix, if that is another.
*/}}
{{- define "kube-synergy.podSpec" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
{{- $values := index $root.Values $component -}}
serviceAccountName: kube-synergy-{{ last (rest .) }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with $root.Values.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- with $root.Values.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- with $values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with $values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/* What every container has. Arguments: the root context and the component's name. */}}
{{- define "kube-synergy.container" -}}
{{- $root := index . 0 -}}
{{- $component := index . 1 -}}
imagePullPolicy: {{ $root.Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
resources:
  {{- toYaml (index $root.Values $component).resources | nindent 2 }}
{{- end }}

{{/* Labels and annotations of a pod. Arguments: the root context, the component's name, annotations of its own. */}}
{{- define "kube-synergy.podMetadata" -}}
{{- $root := index . 0 -}}
labels:
  {{- include "kube-synergy.labels" $root | nindent 2 }}
  app.kubernetes.io/component: {{ index . 1 }}
  {{- with $root.Values.podLabels }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- with merge (dict) (index . 2) $root.Values.podAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{- /* Variables of a program that sends spans. */}}
{{- define "kube-synergy.tracing" -}}
{{- with .Values.tracing.endpoint }}
- name: SYNERGY_TRACING_ENDPOINT
  value: {{ . | quote }}
- name: OTEL_TRACES_SAMPLER
  value: parentbased_traceidratio
- name: OTEL_TRACES_SAMPLER_ARG
  value: {{ $.Values.tracing.share | quote }}
{{- end }}
{{- end }}
