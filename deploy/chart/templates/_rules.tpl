{{- /* Made by `make generate`. Do not edit. */}}

{{- define "mpi-operator.rules.operator" -}}
# MPIJobs. The operator deletes one only if its author asked for that with a TTL.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs
  verbs:
  - list
  - watch
  - delete
# To update the status of an MPIJob.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs/status
  verbs:
  - update
# For owner references with blockOwnerDeletion, where the cluster checks them (OpenShift).
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs/finalizers
  verbs:
  - update
# To run workers, and to read the state of the launcher's pod.
- apiGroups:
  - ''
  resources:
  - pods
  verbs:
  - create
  - get
  - list
  - watch
  - patch
  - delete
# To read from the launcher's log which workers do not answer.
- apiGroups:
  - ''
  resources:
  - pods/log
  verbs:
  - get
# For the DNS names and the hostfile of a job.
- apiGroups:
  - ''
  resources:
  - services
  - configmaps
  verbs:
  - create
  - get
  - list
  - watch
  - patch
# For the SSH keys of a job. Get shows who owns a Secret whose name is taken; the operator never lists or watches Secrets.
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - create
  - get
# For the launcher. Update, because resuming it replaces its scheduling directives.
- apiGroups:
  - batch
  resources:
  - jobs
  verbs:
  - create
  - get
  - list
  - watch
  - update
  - patch
  - delete
# To reset the start time of a launcher that is resumed.
- apiGroups:
  - batch
  resources:
  - jobs/status
  verbs:
  - update
# To record events.
- apiGroups:
  - ''
  resources:
  - events
  verbs:
  - create
  - patch
{{- end }}

{{- define "mpi-operator.rules.lock" -}}
# For leader election.
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  verbs:
  - create
# For the one Lease of the operator. RBAC cannot restrict create by name.
- apiGroups:
  - coordination.k8s.io
  resources:
  - leases
  resourceNames:
  - mpi-operator
  verbs:
  - get
  - watch
  - update
{{- end }}

{{- define "mpi-operator.rules.exec" -}}
# To grant launchers the exec into the workers of their own job. Exec over a WebSocket needs both verbs.
- apiGroups:
  - ''
  resources:
  - pods/exec
  verbs:
  - get
  - create
# For the account of a launcher.
- apiGroups:
  - ''
  resources:
  - serviceaccounts
  verbs:
  - create
  - get
# For the permission of a launcher, which names the workers, so it changes with them.
- apiGroups:
  - rbac.authorization.k8s.io
  resources:
  - roles
  - rolebindings
  verbs:
  - create
  - get
  - patch
{{- end }}

{{- define "mpi-operator.rules.gang" -}}
# For Volcano.
- apiGroups:
  - scheduling.volcano.sh
  resources:
  - podgroups
  verbs:
  - create
  - get
  - list
  - watch
  - patch
  - delete
# For coscheduling.
- apiGroups:
  - scheduling.x-k8s.io
  resources:
  - podgroups
  verbs:
  - create
  - get
  - list
  - watch
  - patch
  - delete
# To compute the minimum resources of a PodGroup, which depend on the pods' priorities.
- apiGroups:
  - scheduling.k8s.io
  resources:
  - priorityclasses
  verbs:
  - list
  - watch
{{- end }}

{{- define "mpi-operator.rules.certificates" -}}
# For the certificate of the webhooks.
- apiGroups:
  - ''
  resources:
  - secrets
  verbs:
  - create
# For the one Secret that has it. RBAC cannot restrict create by name.
- apiGroups:
  - ''
  resources:
  - secrets
  resourceNames:
  - mpi-operator-webhook
  verbs:
  - get
  - update
{{- end }}

{{- define "mpi-operator.rules.trust" -}}
# To make the API server trust the conversion webhook.
- apiGroups:
  - apiextensions.k8s.io
  resources:
  - customresourcedefinitions
  resourceNames:
  - mpijobs.kubeflow.org
  verbs:
  - get
  - watch
  - patch
# To make the API server trust the admission webhooks.
- apiGroups:
  - admissionregistration.k8s.io
  resources:
  - mutatingwebhookconfigurations
  - validatingwebhookconfigurations
  resourceNames:
  - mpi-operator
  verbs:
  - get
  - watch
  - patch
{{- end }}

{{- define "mpi-operator.rules.edit" -}}
# To create, change and delete MPIJobs.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs
  verbs:
  - create
  - get
  - list
  - watch
  - update
  - patch
  - delete
  - deletecollection
# Only the operator writes the status.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs/status
  verbs:
  - get
# For kubectl scale.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs/scale
  verbs:
  - get
  - update
  - patch
{{- end }}

{{- define "mpi-operator.rules.view" -}}
# To view MPIJobs.
- apiGroups:
  - kubeflow.org
  resources:
  - mpijobs
  - mpijobs/status
  verbs:
  - get
  - list
  - watch
{{- end }}
