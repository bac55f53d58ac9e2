package bench

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

type consumer struct {
	name    string
	command func(b *testing.B, bin, sqs, app string, connections int) (*exec.Cmd, error)
}

var consumers = []consumer{
	{"tendril", tendrilUp},
	{"go-sdk-loop", goLoop},
	{"sqs-consumer", sqsConsumer},
	{"camel", camelRoute},
}

func (c consumer) start(b *testing.B, bin, sqs, app string, connections int) (*daemon, error) {
	b.Helper()
	cmd, err := c.command(b, bin, sqs, app, connections)
	if err != nil {
		return nil, err
	}
	return startDaemon(b, cmd, append(credentials, "AWS_ENDPOINT_URL_SQS="+sqs, "BENCH_QUEUE="+queueAt(sqs),
		"BENCH_URL="+app+"/", fmt.Sprint("BENCH_CONNECTIONS=", connections))), nil
}

func queueAt(sqs string) string { return sqs + "/000000000000/bench" }

func tendrilUp(b *testing.B, bin, sqs, app string, connections int) (*exec.Cmd, error) {
	return exec.Command(bin, "up", "--queue-url", queueAt(sqs), "--target", app+"/", "--console", "off",
		"--http-connections", fmt.Sprint(connections), "--data-dir", b.TempDir()), nil
}

func goLoop(*testing.B, string, string, string, int) (*exec.Cmd, error) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = []string{"BENCH_ROLE=loop"}
	return cmd, nil
}

// Each consumer of sqs-consumer processes ten messages concurrently.
func sqsConsumer(b *testing.B, _, _, _ string, _ int) (*exec.Cmd, error) {
	folder, err := installed("node")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("node", inTestdata(b, "consumer.mjs"))
	cmd.Env = []string{"NODE_FOLDER=" + folder}
	return cmd, nil
}

// Each consumer of a Camel route processes one message at a time.
func camelRoute(b *testing.B, _, sqs, app string, connections int) (*exec.Cmd, error) {
	jars, err := installed("camel")
	if err != nil {
		return nil, err
	}
	return exec.Command("java", "-cp", jars+"/*", "-Dqueue.name=bench", "-Dqueue.endpoint="+sqs, "-Dapp.url="+app,
		fmt.Sprint("-Dapp.connections=", connections),
		"-Dcamel.main.routes-include-pattern=file:"+inTestdata(b, "camel.xml"), "org.apache.camel.main.Main"), nil
}

// installed returns a program's folder in TENDRIL_BENCH_PEERS, where `go run ./bench/report -install` installs it.
func installed(name string) (string, error) {
	folder := os.Getenv("TENDRIL_BENCH_PEERS")
	path := filepath.Join(folder, name)
	if _, err := os.Stat(path); err != nil || folder == "" {
		return "", fmt.Errorf("%s is not installed: run `go run ./bench/report -install`, and set TENDRIL_BENCH_PEERS "+
			"to the folder that it prints", name)
	}
	return path, nil
}

func inTestdata(b *testing.B, name string) string {
	b.Helper()
	path, err := filepath.Abs(filepath.Join("testdata", name))
	if err != nil {
		b.Fatal(err)
	}
	return path
}
