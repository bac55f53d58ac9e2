package main

import (
	"bufio"
	"cmp"
	"context"
	"debug/buildinfo"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/CycloneDX/cyclonedx-go"
)

// The SBOM includes third-party files that the console serves.
func (r *release) writeSBOM(context.Context) error {
	info, err := buildinfo.ReadFile(r.binary[r.targets[0]])
	if err != nil {
		return err
	}
	bom := cyclonedx.NewBOM()
	name := "tendril"
	bom.Metadata = &cyclonedx.Metadata{Timestamp: r.time.Format(time.RFC3339), Component: &cyclonedx.Component{
		BOMRef: name, Type: cyclonedx.ComponentTypeApplication, Name: name, Version: r.version,
		Licenses: &cyclonedx.Licenses{{License: &cyclonedx.License{ID: "Apache-2.0"}}},
	}}
	components := []cyclonedx.Component{{BOMRef: "pkg:golang/std@" + info.GoVersion, Type: cyclonedx.ComponentTypeLibrary,
		Name: "std", Version: info.GoVersion, PackageURL: "pkg:golang/std@" + strings.TrimPrefix(info.GoVersion, "go")}}

	for _, module := range info.Deps {
		module = cmp.Or(module.Replace, module)
		url := "pkg:golang/" + module.Path + "@" + module.Version
		component := cyclonedx.Component{BOMRef: url, Type: cyclonedx.ComponentTypeLibrary, Name: module.Path,
			Version: module.Version, PackageURL: url}
		if sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(module.Sum, "h1:")); err == nil && len(sum) == 32 {
			component.Hashes = &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: hex.EncodeToString(sum)}}
		}
		components = append(components, component)
	}

	files, err := thirdParty(filepath.Join(r.root, "internal/console/web/third_party/SHA256SUMS"))
	if err != nil {
		return err
	}
	components = append(components, files...)
	var refs []string
	for _, c := range components {
		refs = append(refs, c.BOMRef)
	}
	slices.Sort(refs)
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: name, Dependencies: &refs}}
	file, err := os.Create(filepath.Join(r.out, "tendril_"+r.version+".cdx.json"))
	if err != nil {
		return err
	}
	defer file.Close()
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := encoder.Encode(bom); err != nil {
		return err
	}
	return file.Close()
}

func thirdParty(sums string) (components []cyclonedx.Component, err error) {
	file, err := os.Open(sums)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	for lines := bufio.NewScanner(file); lines.Scan(); {
		digest, name, found := strings.Cut(lines.Text(), "  ")
		if !found {
			return nil, fmt.Errorf("%s: line %q is not a digest and a name", sums, lines.Text())
		}
		components = append(components, cyclonedx.Component{BOMRef: "file:" + name, Type: cyclonedx.ComponentTypeFile,
			Name: name, Hashes: &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: digest}}})
	}
	return components, nil
}
