//go:build winconform_control_plane

// One binary for a whole test control plane.
//
// `up` links it under the names kube-apiserver, kube-controller-manager,
// kube-scheduler and etcd; the name it is started under says which one it is.
// One binary instead of four saves three links and most of the disk space,
// as they share nearly all of their code.
//
// The build tag keeps ordinary Go tools away from this directory: it has no
// go.mod, because `up` writes one for the Kubernetes version that is asked for.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"

	// The upstream main packages register these too: JSON logs, and the
	// metrics about API requests and about the version.
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

// run returns a main function for a component that is a cobra command. The
// command is only made when it is needed, since making it registers flags.
func run(newCommand func() *cobra.Command) func() {
	return func() { os.Exit(cli.Run(newCommand())) }
}

var components = map[string]func(){
	"etcd":                    func() { etcdmain.Main(os.Args) },
	"kube-apiserver":          run(apiserver.NewAPIServerCommand),
	"kube-controller-manager": run(controllermanager.NewControllerManagerCommand),
	"kube-scheduler":          run(func() *cobra.Command { return scheduler.NewSchedulerCommand() }),
}

func main() {
	name := filepath.Base(os.Args[0])
	start, known := components[name]
	if !known {
		var names []string
		for n := range components {
			names = append(names, n)
		}
		sort.Strings(names)
		fmt.Fprintf(os.Stderr, "%s: start this binary under one of the names %s\n", name, strings.Join(names, ", "))
		os.Exit(2)
	}
	start()
}
