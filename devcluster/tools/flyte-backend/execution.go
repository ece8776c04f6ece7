package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/flyteorg/flyte/flyteidl/gen/pb-go/flyteidl/core"
	pluginsCore "github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/core"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/io"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/ioutils"
	propeller "github.com/flyteorg/flyte/flytepropeller/pkg/controller/nodes/task/k8s"
	"github.com/flyteorg/flyte/flytestdlib/promutils"
	"github.com/flyteorg/flyte/flytestdlib/storage"
	"github.com/golang/protobuf/proto"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// request describes the execution of a task, as a node of a workflow.
type request struct {
	Template    []byte                `json:"template"` // a serialised flyteidl.core.TaskTemplate
	Name        string                `json:"name"`
	Namespace   string                `json:"namespace"`
	Labels      map[string]string     `json:"labels"`
	Annotations map[string]string     `json:"annotations"`
	Owner       metav1.OwnerReference `json:"owner"`
	Data        string                `json:"data"` // where its inputs are, and its outputs go
	// How long the operator may take for its first write; by default, that of Flyte.
	Timeout metav1.Duration `json:"timeout"`
}

// execution is all that the plugin manager asks about a task. What it does not ask is nil.
type execution struct {
	pluginsCore.TaskExecutionContext
	metadata *metadata
	template *core.TaskTemplate
	store    *storage.DataStore
	inputs   io.InputReader
	outputs  io.OutputWriter
	state    propeller.PluginState
}

type metadata struct {
	pluginsCore.TaskExecutionMetadata
	request request
}

type executionID struct {
	pluginsCore.TaskExecutionID
	name string
}

type overrides struct{ pluginsCore.TaskOverrides }

func readExecution(line []byte) (*execution, error) {
	var asked request
	if err := json.Unmarshal(line, &asked); err != nil {
		return nil, fmt.Errorf("the first line is not an execution: %w", err)
	}
	template := &core.TaskTemplate{}
	if err := proto.Unmarshal(asked.Template, template); err != nil {
		return nil, fmt.Errorf("not a task template: %w", err)
	}
	store, err := storage.NewDataStore(&storage.Config{Type: storage.TypeMemory}, promutils.NewScope("data"))
	if err != nil {
		return nil, err
	}
	ctx, data := context.Background(), storage.DataReference(asked.Data)
	inputs := ioutils.NewInputFilePaths(ctx, store, data)
	// The inputs of the task are in its image. Flyte reads them, too: they are empty.
	if err := store.WriteProtobuf(ctx, inputs.GetInputPath(), storage.Options{}, &core.LiteralMap{}); err != nil {
		return nil, err
	}
	outputs := ioutils.NewCheckpointRemoteFilePaths(ctx, store, data, ioutils.NewRawOutputPaths(ctx, data), "")
	return &execution{
		metadata: &metadata{request: asked},
		template: template,
		store:    store,
		inputs:   ioutils.NewRemoteFileInputReader(ctx, store, inputs),
		// As propeller does: what a task has written is read only after the plugin manager.
		outputs: ioutils.NewBufferedOutputWriter(ctx, outputs),
	}, nil
}

func (e *execution) TaskExecutionMetadata() pluginsCore.TaskExecutionMetadata { return e.metadata }
func (e *execution) TaskReader() pluginsCore.TaskReader                       { return e }
func (e *execution) InputReader() io.InputReader                              { return e.inputs }
func (e *execution) OutputWriter() io.OutputWriter                            { return e.outputs }
func (e *execution) DataStore() *storage.DataStore                            { return e.store }
func (e *execution) PluginStateReader() pluginsCore.PluginStateReader         { return e }
func (e *execution) PluginStateWriter() pluginsCore.PluginStateWriter         { return e }

// An execution is the reader of its own template.
func (e *execution) Read(context.Context) (*core.TaskTemplate, error) { return e.template, nil }
func (e *execution) Path(context.Context) (storage.DataReference, error) {
	return storage.DataReference(e.metadata.request.Data + "/template"), nil
}

// An execution remembers what the manager wants to know the next time.
func (e *execution) GetStateVersion() uint8 { return 1 }
func (e *execution) Get(state interface{}) (uint8, error) {
	*state.(*propeller.PluginState) = e.state
	return e.GetStateVersion(), nil
}
func (e *execution) Put(_ uint8, state interface{}) error {
	e.state = *state.(*propeller.PluginState)
	return nil
}
func (e *execution) Reset() error {
	e.state = propeller.PluginState{}
	return nil
}

func (m *metadata) GetNamespace() string                       { return m.request.Namespace }
func (m *metadata) GetLabels() map[string]string               { return m.request.Labels }
func (m *metadata) GetAnnotations() map[string]string          { return m.request.Annotations }
func (m *metadata) GetOwnerReference() metav1.OwnerReference   { return m.request.Owner }
func (m *metadata) GetOverrides() pluginsCore.TaskOverrides    { return overrides{} }
func (m *metadata) GetSecurityContext() core.SecurityContext   { return core.SecurityContext{} }
func (m *metadata) GetEnvironmentVariables() map[string]string { return nil }
func (m *metadata) GetPlatformResources() *v1.ResourceRequirements {
	return &v1.ResourceRequirements{}
}
func (m *metadata) GetK8sServiceAccount() string { return "" }
func (m *metadata) GetConsoleURL() string        { return "" }
func (m *metadata) GetMaxAttempts() uint32       { return 1 }
func (m *metadata) IsInterruptible() bool        { return false }
func (m *metadata) GetTaskExecutionID() pluginsCore.TaskExecutionID {
	return executionID{name: m.request.Name}
}

func (i executionID) GetGeneratedName() string                      { return i.name }
func (i executionID) GetGeneratedNameWith(int, int) (string, error) { return i.name, nil }
func (i executionID) GetUniqueNodeID() string                       { return i.name }
func (i executionID) GetID() core.TaskExecutionIdentifier {
	return core.TaskExecutionIdentifier{
		TaskId:          &core.Identifier{},
		NodeExecutionId: &core.NodeExecutionIdentifier{ExecutionId: &core.WorkflowExecutionIdentifier{}},
	}
}

func (overrides) GetResources() *v1.ResourceRequirements        { return &v1.ResourceRequirements{} }
func (overrides) GetExtendedResources() *core.ExtendedResources { return nil }
func (overrides) GetContainerImage() string                     { return "" }
func (overrides) GetPodTemplate() *core.K8SPod                  { return nil }
func (overrides) GetConfig() *v1.ConfigMap                      { return nil }
