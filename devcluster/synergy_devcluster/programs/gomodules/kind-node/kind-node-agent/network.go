package main

import (
	"bytes"
	"fmt"
	"net"
	"os"

	"github.com/vishvananda/netlink"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	listers "k8s.io/client-go/listers/core/v1"
)

const (
	settings = "/etc/cni/net.d/10-kind-node.conflist"
	// a bridge of the node's own pods; the default route of a pod leads to the node
	plugins = `{
 "cniVersion": "0.4.0",
 "name": "kind-node",
 "plugins": [
  {
   "type": "bridge",
   "bridge": "pods0",
   "isGateway": true,
   "ipMasq": false,
   "hairpinMode": true,
   "ipam": {"type": "host-local", "dataDir": "/run/cni-addresses", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}
  },
  {"type": "portmap", "capabilities": {"portMappings": true}}
 ]
}
`
)

// connect tells the container runtime the addresses of this node's pods, and routes those of every other node to it.
func connect(nodes listers.NodeLister, mine string) error {
	all, err := nodes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, node := range all {
		if node.Spec.PodCIDR == "" {
			continue // the controller manager has not yet given it one
		}
		if node.Name == mine {
			err = configure(node.Spec.PodCIDR)
		} else {
			err = route(node)
		}
		if err != nil {
			return fmt.Errorf("node %s: %w", node.Name, err)
		}
	}
	return nil
}

func configure(subnet string) error {
	text := fmt.Appendf(nil, plugins, subnet)
	if there, err := os.ReadFile(settings); err == nil && bytes.Equal(there, text) {
		return nil
	}
	partial := settings + ".partial"
	if err := os.WriteFile(partial, text, 0o644); err != nil {
		return err
	}
	return os.Rename(partial, settings)
}

func route(node *corev1.Node) error {
	_, pods, err := net.ParseCIDR(node.Spec.PodCIDR)
	if err != nil {
		return err
	}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			return netlink.RouteReplace(&netlink.Route{Dst: pods, Gw: net.ParseIP(address.Address)})
		}
	}
	return nil
}
