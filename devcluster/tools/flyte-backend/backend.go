package main

import (
	"context"
	"fmt"
	"time"

	"github.com/flyteorg/flyte/flyteplugins/go/tasks/logs"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery"
	pluginsCore "github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/core"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/flytek8s/config"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/pluginmachinery/k8s"
	"github.com/flyteorg/flyte/flyteplugins/go/tasks/plugins/k8s/kfoperators/common"
	_ "github.com/flyteorg/flyte/flyteplugins/go/tasks/plugins/k8s/kfoperators/mpi"
	"github.com/flyteorg/flyte/flytepropeller/pkg/apis/flyteworkflow/v1alpha1"
	"github.com/flyteorg/flyte/flytepropeller/pkg/controller/executors"
	propeller "github.com/flyteorg/flyte/flytepropeller/pkg/controller/nodes/task/k8s"
	stdConfig "github.com/flyteorg/flyte/flytestdlib/config"
	"github.com/flyteorg/flyte/flytestdlib/promutils"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
)

const (
	taskType = "mpi"
	// Flyte looks at a task after a while even if nothing changed.
	patience = time.Minute
	// The pod and the container of a log, which Flyte's consoles make links of.
	logURI = "{{ .podName }}/{{ .containerName }}"
)

// backend is Flyte's plugin manager with its plugin for MPIJobs, on a cluster.
type backend struct {
	manager *propeller.PluginManager
	changed chan struct{}
}

// setup is what Flyte's propeller gives to its plugins.
type setup struct {
	pluginsCore.SetupContext
	cluster cluster.Cluster
	scope   promutils.Scope
	changed chan struct{}
}

func startBackend(ctx context.Context, kubeconfig string) (*backend, error) {
	connection, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, err
	}
	scope := promutils.NewScope("flyte")
	cluster, err := startCluster(ctx, connection, scope)
	if err != nil {
		return nil, err
	}
	entry, err := plugin()
	if err != nil {
		return nil, err
	}
	changed := make(chan struct{}, 1)
	context := &setup{cluster: cluster, scope: scope, changed: changed}
	clients, err := kubernetes.NewForConfig(connection)
	if err != nil {
		return nil, err
	}
	manager, err := propeller.NewPluginManager(ctx, context, entry, propeller.NewResourceMonitorIndex(), clients)
	return &backend{manager, changed}, err
}

// configure sets what administrators of Flyte set: finalizers, as its charts do, and links to logs.
func configure(timeout time.Duration) error {
	if timeout > 0 {
		if err := common.SetConfig(&common.Config{Timeout: stdConfig.Duration{Duration: timeout}}); err != nil {
			return err
		}
	}
	plugins := *config.GetK8sPluginConfig()
	plugins.InjectFinalizer = true
	if err := config.SetK8sPluginConfig(&plugins); err != nil {
		return err
	}
	return logs.SetLogConfig(&logs.LogConfig{IsKubernetesEnabled: true, KubernetesTemplateURI: logURI})
}

func startCluster(ctx context.Context, connection *rest.Config, scope promutils.Scope) (cluster.Cluster, error) {
	started, err := cluster.New(connection, func(options *cluster.Options) {
		options.Scheme = scheme.Scheme
		options.NewClient = executors.BuildNewClientFunc(scope)
	})
	if err != nil {
		return nil, err
	}
	go func() { _ = started.Start(ctx) }()
	if !started.GetCache().WaitForCacheSync(ctx) {
		return nil, fmt.Errorf("the caches are not filled")
	}
	return started, nil
}

func plugin() (k8s.PluginEntry, error) {
	for _, entry := range pluginmachinery.PluginRegistry().GetK8sPlugins() {
		if entry.ID == taskType {
			return entry, nil
		}
	}
	return k8s.PluginEntry{}, fmt.Errorf("Flyte has no plugin %q", taskType)
}

func (b *backend) execute(ctx context.Context, command string, task *execution) (answer, error) {
	switch command {
	case "handle":
		return b.handle(ctx, task)
	case "next":
		select {
		case <-b.changed:
		case <-time.After(patience):
		}
		return b.handle(ctx, task)
	case "abort":
		return answer{}, b.manager.Abort(ctx, task)
	case "finalize":
		return answer{}, b.manager.Finalize(ctx, task)
	}
	return answer{}, fmt.Errorf("unknown command %q", command)
}

func (b *backend) handle(ctx context.Context, task *execution) (answer, error) {
	transition, err := b.manager.Handle(ctx, task)
	if err != nil {
		return answer{}, err
	}
	return described(transition.Info()), nil
}

func (s *setup) KubeClient() pluginsCore.KubeClient { return s.cluster }
func (s *setup) MetricsScope() promutils.Scope      { return s.scope }
func (s *setup) OwnerKind() string                  { return v1alpha1.FlyteWorkflowKind }

// EnqueueOwner makes Flyte look at a workflow because one of its MPIJobs has changed.
func (s *setup) EnqueueOwner() pluginsCore.EnqueueOwner {
	return func(types.NamespacedName) error {
		select {
		case s.changed <- struct{}{}:
		default:
		}
		return nil
	}
}
