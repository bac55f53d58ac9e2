package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

type peer struct {
	folder, name, version string
	// jars are Maven coordinates ("group:artifact:version"), installed with their dependencies.
	jars []string
	// commands install a program without jars. {} stands for its folder.
	commands []string
}

// These versions work with the benchmarks.
var peers = []peer{
	{folder: "node", name: "sqs-consumer", version: "15.0.3", commands: []string{
		"npm install --silent --no-audit --no-fund --prefix {} sqs-consumer@15.0.3 @aws-sdk/client-sqs@3.1169.0"}},
	{folder: "camel", name: "Apache Camel", version: "4.14.1", jars: []string{"org.apache.camel:camel-main:4.14.1",
		"org.apache.camel:camel-aws2-sqs:4.14.1", "org.apache.camel:camel-http:4.14.1",
		"org.apache.camel:camel-xml-io-dsl:4.14.1"}},
	{folder: "goaws", name: "GoAws", version: "0.4.5", commands: []string{
		"env GOBIN={} GOFLAGS= go install github.com/Admiral-Piett/goaws/app/cmd@v0.4.5"}},
	{folder: "elasticmq", name: "ElasticMQ", version: "1.7.1",
		jars: []string{"org.elasticmq:elasticmq-server_2.13:1.7.1"}},
	{folder: "python", name: "moto", version: "5.2.5", commands: []string{"python3 -m venv {}",
		"{}/bin/pip install --quiet --disable-pip-version-check moto[server,sqs]==5.2.5"}},
}

func peersFolder() string {
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	return filepath.Join(cache, "tendril-bench")
}

const versionFile = "version"

func (p *peer) installed(folder string) bool {
	version, err := os.ReadFile(filepath.Join(folder, p.folder, versionFile))
	return err == nil && string(version) == p.version
}

func versionsOf(folder string) string {
	var there []string
	for _, p := range peers {
		if p.installed(folder) {
			there = append(there, p.name+" "+p.version)
		}
	}
	return strings.Join(there, ", ")
}

func installPeers(folder string) error {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return err
	}

	for _, p := range peers {
		if p.installed(folder) {
			continue
		}
		fmt.Fprintln(os.Stderr, "installing", p.name, p.version)
		if err := p.install(filepath.Join(folder, p.folder)); err != nil {
			return fmt.Errorf("installing %s: %w", p.name, err)
		}
	}

	fmt.Println(folder)
	return nil
}

func (p *peer) install(to string) error {
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}

	commands := p.commands
	if len(p.jars) > 0 {
		pom := filepath.Join(to, "pom.xml")
		if err := os.WriteFile(pom, []byte(project(p.jars)), 0o644); err != nil {
			return err
		}
		commands = []string{"mvn -q -B -f " + pom + " dependency:copy-dependencies -DoutputDirectory={}"}
	}

	for _, line := range commands {
		words := strings.Fields(line)
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "{}", to)
		}
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return os.WriteFile(filepath.Join(to, versionFile), []byte(p.version), 0o644)
}

func project(jars []string) string {
	var b strings.Builder
	b.WriteString(`<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>` +
		`<groupId>tendril</groupId><artifactId>peers</artifactId><version>1</version><packaging>pom</packaging><dependencies>`)
	for _, jar := range jars {
		parts := strings.Split(jar, ":")
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>",
			parts[0], parts[1], parts[2])
	}
	return b.String() + "</dependencies></project>\n"
}
