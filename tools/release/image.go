package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// nobody is numeric, so that Kubernetes can check runAsNonRoot.
const nobody = 65532

// writeImage writes a single tar file that docker load, podman load and registry tools can read.
func (r *release) writeImage(context.Context) error {
	if len(r.linux()) == 0 {
		return nil
	}

	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, t := range r.linux() {
		image, err := r.image(t)
		if err != nil {
			return err
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: t.os, Architecture: t.arch}}})
	}

	folder := filepath.Join(r.work, "layout")
	outer := mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{
		Add: index, Descriptor: v1.Descriptor{Annotations: map[string]string{
			"org.opencontainers.image.ref.name": r.version, "io.containerd.image.name": "tendril:" + r.version}}})
	if _, err := layout.Write(folder, outer); err != nil {
		return err
	}
	return r.packLayout(folder)
}

func (r *release) packLayout(folder string) error {
	var entries []entry
	err := filepath.WalkDir(folder, func(path string, file os.DirEntry, err error) error {
		if err != nil || path == folder {
			return err
		}
		name := strings.TrimPrefix(filepath.ToSlash(path), filepath.ToSlash(folder)+"/")
		if file.IsDir() {
			entries = append(entries, entry{name: name + "/", mode: 0o755})
			return nil
		}
		data, err := os.ReadFile(path)
		entries = append(entries, entry{name: name, mode: 0o644, data: data})
		return err
	})
	if err != nil {
		return err
	}

	var archive bytes.Buffer
	if err := writeTar(&archive, entries, r.time); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(r.out, "tendril_"+r.version+"_oci.tar"), archive.Bytes(), 0o644)
}

// image has a single layer and is equivalent to deploy/docker/Dockerfile.
func (r *release) image(t target) (v1.Image, error) {
	binary, err := os.ReadFile(r.binary[t])
	if err != nil {
		return nil, err
	}

	var roots bytes.Buffer // root certificates, whose version go.mod pins
	for root := range bundle.Roots() {
		if err := pem.Encode(&roots, &pem.Block{Type: "CERTIFICATE", Bytes: root.Certificate}); err != nil {
			return nil, err
		}
	}

	var files bytes.Buffer
	err = writeTar(&files, []entry{
		{name: "etc/", mode: 0o755},
		{name: "etc/passwd", mode: 0o644, data: []byte("root:x:0:0:root:/:\ntendril:x:65532:65532:tendril:/var/lib/tendril:\n")},
		{name: "etc/group", mode: 0o644, data: []byte("root:x:0:\ntendril:x:65532:\n")},
		{name: "etc/ssl/certs/ca-certificates.crt", mode: 0o644, data: roots.Bytes()},
		{name: "opt/elasticbeanstalk/bin/get-config", mode: 0o777, link: "/usr/local/bin/tendril"},
		{name: "tmp/", mode: 0o1777},
		{name: "usr/local/bin/tendril", mode: 0o755, data: binary},
		{name: "usr/share/doc/tendril/copyright", mode: 0o644, data: []byte("Apache-2.0\n")},
		{name: "var/lib/tendril/", mode: 0o700, uid: nobody},
	}, r.time)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	}, tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: r.time}, CreatedBy: "tools/release", Comment: "tendril " + r.version}})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS = t.os
	config.Architecture = t.arch
	config.Created = v1.Time{Time: r.time}
	config.Config = v1.Config{
		User:       "65532:65532",
		Env:        []string{"PATH=/usr/local/bin", "TENDRIL_DATA_DIR=/var/lib/tendril/data"},
		Entrypoint: []string{"/usr/local/bin/tendril"},
		Cmd:        []string{"up"},
		Volumes:    map[string]struct{}{"/var/lib/tendril": {}},
		WorkingDir: "/",
		StopSignal: "SIGTERM",
		Labels: map[string]string{
			"org.opencontainers.image.title":       "tendril",
			"org.opencontainers.image.description": "A complete worker environment: a queue, a worker, an app",
			"org.opencontainers.image.licenses":    "Apache-2.0",
			"org.opencontainers.image.version":     r.version,
		},
	}
	return mutate.ConfigFile(image, config)
}
