// Prints what Katib makes of a job: the status that its trial controller reads from it.
//
//	katib-trial-status < '{"trial": {"spec": {…}}, "job": {…}}'
//
// The decision is Katib's own, from its module. It prints null where Katib leaves the trial as it is.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	trials "github.com/kubeflow/katib/pkg/apis/controller/trials/v1beta1"
	"github.com/kubeflow/katib/pkg/controller.v1beta1/trial/util"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

type question struct {
	Trial trials.Trial              `json:"trial"`
	Job   unstructured.Unstructured `json:"job"`
}

func main() {
	if err := answer(); err != nil {
		fmt.Fprintln(os.Stderr, "katib-trial-status:", err)
		os.Exit(1)
	}
}

func answer() error {
	var asked question
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	status, err := util.GetDeployedJobStatus(&asked.Trial, &asked.Job)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(status)
}
