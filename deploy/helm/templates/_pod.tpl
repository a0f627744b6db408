{{- /* The image by its digest, else by its tag. */ -}}
{{- define "gateway.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- /* Nothing; it fails for values that contradict each other. */ -}}
{{- define "gateway.require" -}}
{{- range $name := list "frontEnd" "worker" -}}
{{- with (get $.Values $name).replicas -}}
{{- if gt (int .minimum) (int .maximum) -}}
{{- fail (printf "%s.replicas: the minimum, %d, is above the maximum, %d" $name (int .minimum) (int .maximum)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $needed := add (ceil (float64 (default 30 .Values.settings.GATEWAY_SHUTDOWN_GRACE))) 15 -}}
{{- if lt (int64 .Values.terminationGracePeriodSeconds) $needed -}}
{{- fail (printf "terminationGracePeriodSeconds: must be at least %d, GATEWAY_SHUTDOWN_GRACE and 15 more" $needed) -}}
{{- end -}}
{{- end -}}

{{- /* The labels of every resource. */ -}}
{{- define "gateway.labels" -}}
app.kubernetes.io/part-of: agent-connector-gateway
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- /* The settings, with the file of the keys that every pod mounts. */ -}}
{{- define "gateway.settings" -}}
{{ toYaml (merge (dict "GATEWAY_ENCRYPTION_KEYS_FILE" "/etc/gateway/keys/encryption.keys") .Values.settings) }}
{{- end -}}

{{- /* What every pod has: no token, no root. */ -}}
{{- define "gateway.pod" -}}
automountServiceAccountToken: false
# The variables of Kubernetes for the service `gateway`, such as GATEWAY_PORT, look like settings.
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  runAsUser: 10001
  runAsGroup: 10001
  fsGroup: 10001
  seccompProfile: {type: RuntimeDefault}
{{- with .Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . | quote }}
  {{- end }}
{{- end }}
{{- end -}}

{{- /* What every container has: its image, no privileges, and the volumes. */ -}}
{{- define "gateway.container" -}}
image: {{ include "gateway.image" . | quote }}
imagePullPolicy: {{ .Values.image.pullPolicy }}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities: {drop: [ALL]}
volumeMounts:
  - {name: keys, mountPath: /etc/gateway/keys, readOnly: true}
  - {name: data, mountPath: /var/lib/gateway}
  - {name: tmp, mountPath: /tmp}
{{- end -}}

{{- define "gateway.envFrom" -}}
envFrom:
  - configMapRef: {name: gateway}
  - secretRef: {name: {{ .Values.secrets.settings | quote }}}
{{- end -}}

{{- /* The volumes, by a dict of `Values` and `size`, the limit of the data folder. */ -}}
{{- define "gateway.volumes" -}}
volumes:
  - name: keys
    secret: {secretName: {{ .Values.secrets.keys | quote }}, defaultMode: 0440}
  - name: data
    emptyDir: {sizeLimit: {{ .size }}}
  - name: tmp
    emptyDir: {sizeLimit: 1Gi}
{{- end -}}

{{- /* A deployment up to its containers, by a dict of `root`, `name`, `role` (values of the role) and `grace` in seconds. */ -}}
{{- define "gateway.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .name }}
  labels:
    {{- include "gateway.labels" .root | nindent 4 }}
spec:
  revisionHistoryLimit: 5
  strategy:
    rollingUpdate: {maxUnavailable: 0, maxSurge: 1}
  {{- if eq (int .role.replicas.minimum) (int .role.replicas.maximum) }}
  replicas: {{ .role.replicas.minimum }}
  {{- end }}
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name }}
  template:
    metadata:
      labels:
        app.kubernetes.io/name: {{ .name }}
      annotations:
        # Pods restart when a setting changes.
        checksum/settings: {{ include "gateway.settings" .root | sha256sum }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "9464"
        {{- with .role.annotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      terminationGracePeriodSeconds: {{ .grace }}
      serviceAccountName: gateway
      {{- include "gateway.pod" .root | nindent 6 }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {app.kubernetes.io/name: {{ .name }}}
      {{- with .role.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with .role.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      initContainers:
        # No process of a version runs on a schema older than its own.
        - name: schema
          args: [migrate, --check]
          {{- include "gateway.envFrom" .root | nindent 10 }}
          {{- include "gateway.container" .root | nindent 10 }}
          resources:
            requests: {cpu: 50m, memory: 128Mi}
            limits: {memory: 256Mi}
      {{- include "gateway.volumes" (dict "Values" .root.Values "size" .role.dataSize) | nindent 6 }}
{{- end -}}
