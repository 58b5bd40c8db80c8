{{- define "kube-synergy.schedulerConfig" -}}
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection:
  leaderElect: true
  resourceName: kube-synergy-scheduler
  resourceNamespace: {{ .Release.Namespace }}
clientConnection:
  qps: {{ .Values.scheduler.clientQPS }}
  burst: {{ mul 2 .Values.scheduler.clientQPS }}
# an extender is shown the sampled nodes only
percentageOfNodesToScore: 100
profiles:
  - schedulerName: kube-synergy
extenders:
  - urlPrefix: https://{{ include "kube-synergy.extenderHost" . }}:9443
    filterVerb: filter
    prioritizeVerb: prioritize
    bindVerb: bind
    preemptVerb: preempt
    weight: 10
    enableHTTPS: true
    tlsConfig:
      caFile: /etc/kube-synergy/tls/ca.crt
      certFile: /etc/kube-synergy/tls/tls.crt
      keyFile: /etc/kube-synergy/tls/tls.key
    httpTimeout: {{ .Values.scheduler.extenderTimeout }}
    nodeCacheCapable: true
    # no pod of this scheduler may be placed while the extender cannot be asked; there are no managedResources, so that
    # it is asked whatever the pod's GPUs are called
    ignorable: false
{{- end }}
