{{- define "mpi-operator.namespace" -}}
{{ .Values.namespace.name | default .Release.Namespace }}
{{- end }}

{{- define "mpi-operator.selector" -}}
app: mpi-operator
app.kubernetes.io/name: mpi-operator
app.kubernetes.io/component: mpijob
{{- end }}

{{- define "mpi-operator.labels" -}}
app.kubernetes.io/name: mpi-operator
app.kubernetes.io/component: mpijob
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- define "mpi-operator.subject" -}}
- kind: ServiceAccount
  name: {{ .Values.serviceAccount.name }}
  namespace: {{ include "mpi-operator.namespace" . }}
{{- end }}

{{- /* Whether the operator makes its own certificates, which needs permissions. */}}
{{- define "mpi-operator.ownCertificates" -}}
{{- if and .Values.webhooks.enabled (not .Values.webhooks.certManager.enabled) }}yes{{ end }}
{{- end }}

{{- /* For the objects whose caBundle cert-manager fills in. */}}
{{- define "mpi-operator.injectCA" -}}
{{- if .Values.webhooks.certManager.enabled -}}
cert-manager.io/inject-ca-from: {{ include "mpi-operator.namespace" . }}/mpi-operator-webhook
{{- end }}
{{- end }}
