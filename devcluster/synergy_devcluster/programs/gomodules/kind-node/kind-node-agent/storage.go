package main

import (
	"context"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	listers "k8s.io/client-go/listers/core/v1"
)

const (
	folders      = "/var/local-volumes"
	class        = "standard"
	provisioner  = "kube-synergy.dev/node-folder"
	selectedNode = "volume.kubernetes.io/selected-node"
	byWhom       = "pv.kubernetes.io/provisioned-by"
)

// storage makes a folder of this node the volume of each claim that the scheduler has given to this node.
type storage struct {
	client  kubernetes.Interface
	node    string
	claims  listers.PersistentVolumeClaimLister
	volumes listers.PersistentVolumeLister
}

func (s storage) settle(ctx context.Context) error {
	claims, err := s.claims.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, claim := range claims {
		if s.wants(claim) {
			if err := s.make(ctx, claim); err != nil {
				return err
			}
		}
	}
	volumes, err := s.volumes.List(labels.Everything())
	if err != nil {
		return err
	}
	for _, volume := range volumes {
		if s.unused(volume) {
			if err := s.remove(ctx, volume); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s storage) wants(claim *corev1.PersistentVolumeClaim) bool {
	named := claim.Spec.StorageClassName
	return named != nil && *named == class && claim.Spec.VolumeName == "" &&
		claim.DeletionTimestamp == nil && claim.Annotations[selectedNode] == s.node
}

// unused says whether a volume of this node has lost its claim.
func (s storage) unused(volume *corev1.PersistentVolume) bool {
	return volume.Annotations[byWhom] == provisioner && volume.Labels[corev1.LabelHostname] == s.node &&
		volume.Status.Phase == corev1.VolumeReleased && volume.DeletionTimestamp == nil &&
		volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete
}

func (s storage) make(ctx context.Context, claim *corev1.PersistentVolumeClaim) error {
	name := "pvc-" + string(claim.UID)
	folder := filepath.Join(folders, name)
	if err := os.MkdirAll(folder, 0o777); err != nil {
		return err
	}
	// pods run as any user; MkdirAll minds the umask
	if err := os.Chmod(folder, 0o777); err != nil {
		return err
	}
	onNode := corev1.NodeSelectorRequirement{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{s.node}}
	directory := corev1.HostPathDirectory
	_, err := s.client.CoreV1().PersistentVolumes().Create(ctx, &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{
			Name:        name,
			Labels:      map[string]string{corev1.LabelHostname: s.node},
			Annotations: map[string]string{byWhom: provisioner},
		},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: claim.Spec.Resources.Requests[corev1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: corev1.PersistentVolumeReclaimDelete,
			StorageClassName:              class,
			ClaimRef: &corev1.ObjectReference{
				APIVersion: "v1", Kind: "PersistentVolumeClaim", Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
			},
			PersistentVolumeSource: corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: &directory}},
			NodeAffinity: &corev1.VolumeNodeAffinity{Required: &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{onNode}}},
			}},
		},
	}, metav1.CreateOptions{})
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

func (s storage) remove(ctx context.Context, volume *corev1.PersistentVolume) error {
	if err := os.RemoveAll(filepath.Join(folders, volume.Name)); err != nil {
		return err
	}
	err := s.client.CoreV1().PersistentVolumes().Delete(ctx, volume.Name, metav1.DeleteOptions{})
	if errors.IsNotFound(err) {
		return nil
	}
	return err
}
