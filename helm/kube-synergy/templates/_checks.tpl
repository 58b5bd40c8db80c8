{{/*
What the schema cannot see, or could not say in words. What is not told here would be told by pods that never start.
*/}}
{{- define "kube-synergy.check" -}}
{{- range $component := list "operator" "extender" "scheduler" "certificates" -}}
{{- include "kube-synergy.checkResources" (list $component (index $.Values $component).resources) -}}
{{- end -}}
{{- include "kube-synergy.checkLabels" . -}}
{{- include "kube-synergy.checkSchedule" . -}}
{{- $timeout := .Values.scheduler.extenderTimeout -}}
{{- if not (regexMatch "^(([1-9]|[1-5][0-9]|60)s|([5-9][0-9]{2}|[1-9][0-9]{3}|[1-5][0-9]{4})ms)$" $timeout) -}}
{{- fail (printf "scheduler.extenderTimeout: %q is not between 500ms and 60s; write 5s or 1500ms" $timeout) -}}
{{- end -}}
{{- end }}

{{/* Arguments: the component's name, its resources. */}}
{{- define "kube-synergy.checkResources" -}}
{{- $component := index . 0 -}}
{{- $requests := (index . 1).requests | default dict -}}
{{- range $kind, $amounts := index . 1 -}}
{{- range $name, $amount := $amounts -}}
{{- $path := printf "%s.resources.%s.%s" $component $kind $name -}}
{{- $text := kindIs "float64" $amount | ternary (printf "%.3f" $amount | trimSuffix ".000") (toString $amount) -}}
{{- if eq $name "cpu" -}}
{{- if not (and (regexMatch "^([0-9]+m?|[0-9]+\\.[0-9]{1,3})$" $text) (gt (include "kube-synergy.number" $amount | float64) 0.0)) -}}
{{- fail (printf "%s: %s is no number of CPUs; write 500m or 2" $path $text) -}}
{{- end -}}
{{- else if not (regexMatch "^[0-9]+(\\.[0-9]+)?(k|M|G|T|Ki|Mi|Gi|Ti)?$" $text) -}}
{{- fail (printf "%s: %s is no number of bytes; write 256Mi or 1Gi" $path $text) -}}
{{- else if lt (include "kube-synergy.number" $amount | float64) 16777216.0 -}}
{{- fail (printf "%s: %s is less than 16Mi, with which nothing here starts; the unit is bytes, so write 256Mi or 1Gi" $path $text) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $name, $limit := (index . 1).limits -}}
{{- with get $requests $name -}}
{{- if gt (include "kube-synergy.number" . | float64) (include "kube-synergy.number" $limit | float64) -}}
{{- fail (printf "%s.resources: the request of %v %s is more than the limit of %v" $component . $name $limit) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end }}

{{- define "kube-synergy.checkLabels" -}}
{{- $own := fromYaml (include "kube-synergy.labels" .) -}}
{{- range $name, $_ := .Values.podLabels -}}
{{- if or (hasKey $own $name) (eq $name "app.kubernetes.io/component") -}}
{{- fail (printf "podLabels: %s is a label of the chart's own, by which its pods are found" $name) -}}
{{- end -}}
{{- end -}}
{{- end }}

{{/* A certificate is renewed when a third of its time is left: somebody must look in that third. */}}
{{- define "kube-synergy.checkSchedule" -}}
{{- $schedule := .Values.certificates.schedule -}}
{{- $minute := "(\\*|[0-5]?[0-9](-[0-5]?[0-9])?)(/[1-9][0-9]?)?" -}}
{{- $hour := "(\\*|([01]?[0-9]|2[0-3])(-([01]?[0-9]|2[0-3]))?)(/[1-9][0-9]?)?" -}}
{{- $day := "(\\*|([0-6]|SUN|MON|TUE|WED|THU|FRI|SAT)(-([0-6]|SUN|MON|TUE|WED|THU|FRI|SAT))?)(/[1-6])?" -}}
{{- $list := "%s(,%s)*" -}}
{{- $fields := printf "%s %s \\* \\* %s" (printf $list $minute $minute) (printf $list $hour $hour) (printf $list $day $day) -}}
{{- if not (regexMatch (printf "^(@weekly|@daily|@midnight|@hourly|%s)$" $fields) $schedule) -}}
{{- fail (printf "certificates.schedule: %q is not understood, or looks less than once a week; write @daily, @weekly, or minute (0-59), hour (0-23), *, * and days of the week (0-6 or SUN-SAT), such as 17 3 * * *" $schedule) -}}
{{- end -}}
{{- $daily := or (hasSuffix " *" $schedule) (has $schedule (list "@daily" "@midnight" "@hourly")) -}}
{{- if and (include "kube-synergy.certificatesByJob" .) (not $daily) (lt (int .Values.tls.certificateDays) 21) -}}
{{- fail "tls.certificateDays: at least 21 where certificates.schedule does not look every day, since a certificate is renewed when a third of its days is left" -}}
{{- end -}}
{{- end }}

{{/* A Kubernetes quantity as a number. */}}
{{- define "kube-synergy.number" -}}
{{- $units := dict "m" 0.001 "k" 1e3 "M" 1e6 "G" 1e9 "T" 1e12 "Ki" 1024.0 "Mi" 1048576.0 "Gi" 1073741824.0 "Ti" 1099511627776.0 -}}
{{- $text := toString . -}}
{{- $unit := regexFind "(m|k|M|G|T|Ki|Mi|Gi|Ti)$" $text -}}
{{- mulf (trimSuffix $unit $text | float64) (get $units $unit | default 1.0) -}}
{{- end }}

{{/* What NVIDIA's device plugin refuses, or takes and then does not share by. */}}
{{- define "kube-synergy.checkDevicePlugin" -}}
{{- $names := list "default" -}}
{{- range .Values.devicePlugin.configs -}}
{{- $path := printf "devicePlugin.configs: %s" .name -}}
{{- if has .name $names -}}
{{- fail (printf "%s: the name is taken; default is the configuration of nodes without a label" $path) -}}
{{- end -}}
{{- $names = append $names .name -}}
{{- if lt (int .replicas) 2 -}}
{{- fail (printf "%s: replicas is %v, with which the plugin shares nothing; write 2 or more, or leave the configuration out" $path .replicas) -}}
{{- end -}}
{{- if ne (.migStrategy | default "none") "none" -}}
{{- fail (printf "%s: migStrategy is %s, and the plugin shares no MIG devices by MPS; leave it out, or use another configuration for nodes with MIG" $path .migStrategy) -}}
{{- end -}}
{{- end -}}
{{- end }}
