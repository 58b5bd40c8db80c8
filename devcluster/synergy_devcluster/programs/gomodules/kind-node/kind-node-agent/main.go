// Command kind-node-agent is what a kind node needs beside the kubelet: it connects the node's pods to those of the other nodes,
// and makes volumes of folders on the node.
package main

import (
	"context"
	"log"
	"os"
	"time"

	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

const (
	resync  = time.Minute
	restart = 2 * time.Second
	// until kube-proxy leads to the API server
	tryAgain = 500 * time.Millisecond
)

func main() {
	config, err := rest.InClusterConfig()
	if err != nil {
		log.Fatalf("no access to the API server: %v", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		log.Fatal(err)
	}
	node := os.Getenv("NODE_NAME")
	if node == "" {
		log.Fatal("NODE_NAME is not set")
	}
	for {
		_, err := client.Discovery().ServerVersion()
		if err == nil {
			break
		}
		log.Printf("API server: %v, will try again", err)
		time.Sleep(tryAgain)
	}
	factory := informers.NewSharedInformerFactory(client, resync)
	nodes, claims, volumes := factory.Core().V1().Nodes(), factory.Core().V1().PersistentVolumeClaims(), factory.Core().V1().PersistentVolumes()
	changed := make(chan struct{}, 1)
	for _, informer := range []cache.SharedIndexInformer{nodes.Informer(), claims.Informer(), volumes.Informer()} {
		if _, err := informer.AddEventHandler(tell(changed)); err != nil {
			log.Fatal(err)
		}
	}
	ctx := context.Background()
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	storage := storage{client: client, node: node, claims: claims.Lister(), volumes: volumes.Lister()}
	for range changed {
		if err := connect(nodes.Lister(), node); err != nil {
			again(changed, "network", err)
		}
		if err := storage.settle(ctx); err != nil {
			again(changed, "volumes", err)
		}
	}
}

// again has the work done anew after a while.
func again(changed chan struct{}, what string, err error) {
	log.Printf("%s: %v, will try again", what, err)
	time.AfterFunc(restart, func() { wake(changed) })
}

func wake(changed chan struct{}) {
	select {
	case changed <- struct{}{}:
	default:
	}
}

func tell(changed chan struct{}) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { wake(changed) },
		UpdateFunc: func(any, any) { wake(changed) },
		DeleteFunc: func(any) { wake(changed) },
	}
}
