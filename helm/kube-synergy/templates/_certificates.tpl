{{/* Whether the chart's own Job makes the certificates; not empty if so. Contradictions are told here. */}}
{{- define "kube-synergy.certificatesByJob" -}}
{{- $tls := .Values.tls -}}
{{- if and $tls.certManager.enabled (or $tls.extenderSecret $tls.schedulerSecret) -}}
{{- fail "tls.certManager.enabled: cert-manager writes Secrets of fixed names; leave tls.extenderSecret and tls.schedulerSecret empty" -}}
{{- else if and $tls.certManager.enabled (not $tls.certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name: name the Issuer or ClusterIssuer that shall sign; it must put its authority into ca.crt" -}}
{{- else if ne (empty $tls.extenderSecret) (empty $tls.schedulerSecret) -}}
{{- fail "tls.extenderSecret and tls.schedulerSecret: give both, or neither to have certificates made" -}}
{{- else if gt (int $tls.certificateDays) (int $tls.authorityDays) -}}
{{- fail "tls.certificateDays: a certificate cannot be valid for longer than its authority (tls.authorityDays)" -}}
{{- else if gt (mul 6 $tls.overlapDays) (int64 $tls.authorityDays) -}}
{{- fail "tls.overlapDays: at most a sixth of tls.authorityDays" -}}
{{- else if not (or $tls.certManager.enabled $tls.extenderSecret) -}}
yes
{{- end -}}
{{- end }}

{{/* DNS names of the extender, most wanted first. */}}
{{- define "kube-synergy.extenderNames" -}}
{{- $host := include "kube-synergy.extenderHost" . -}}
{{- $short := printf "kube-synergy-extender.%s" .Release.Namespace -}}
{{ join "," (list $host (printf "%s.cluster.local" $host) $short "kube-synergy-extender") }}
{{- end }}

{{/* Arguments: the root context, annotations, the hook's weight. */}}
{{- define "kube-synergy.certificatesMetadata" -}}
{{- $root := index . 0 -}}
namespace: {{ $root.Release.Namespace }}
labels:
  {{- include "kube-synergy.labels" $root | nindent 2 }}
  app.kubernetes.io/component: certificates
{{- with index . 1 }}
annotations:
  {{- toYaml (merge (dict "helm.sh/hook-weight" (index $ 2)) .) | nindent 2 }}
{{- end }}
{{- end }}

{{/* A pod template of the Job. Arguments: the root context, the service account's name without its prefix. */}}
{{- define "kube-synergy.certificatesPod" -}}
{{- $root := index . 0 -}}
metadata:
  {{- include "kube-synergy.podMetadata" (list $root "certificates" (dict)) | nindent 2 }}
spec:
  {{- include "kube-synergy.podSpec" (list $root "certificates" (index . 1)) | nindent 2 }}
  restartPolicy: OnFailure
  containers:
    - name: certificates
      image: {{ include "kube-synergy.image" (list $root "operator") }}
      {{- include "kube-synergy.container" (list $root "certificates") | nindent 6 }}
      command: [python3, -m, synergy_operator.certificates]
      env:
        - name: SYNERGY_NAMESPACE
          valueFrom:
            fieldRef: {fieldPath: metadata.namespace}
        - name: SYNERGY_EXTENDER_NAMES
          value: {{ include "kube-synergy.extenderNames" $root }}
        - name: SYNERGY_SCHEDULER_NAME
          value: {{ first $root.Values.tls.schedulerNames }}
        - name: SYNERGY_AUTHORITY_DAYS
          value: {{ $root.Values.tls.authorityDays | quote }}
        - name: SYNERGY_CERTIFICATE_DAYS
          value: {{ $root.Values.tls.certificateDays | quote }}
        - name: SYNERGY_OVERLAP_DAYS
          value: {{ $root.Values.tls.overlapDays | quote }}
{{- end }}
