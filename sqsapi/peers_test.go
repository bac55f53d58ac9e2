package sqsapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Clients written by others are the proof that the wire is right. They are no
// part of a Go installation, so a test that misses one is skipped and says
// so; TENDRIL_REQUIRE_PEERS=1 makes it fail instead.
//
//	TENDRIL_PYTHON        a Python with boto3; python3 when unset
//	TENDRIL_NODE_MODULES  a node_modules folder with @aws-sdk/client-sqs

func TestBoto3(t *testing.T) {
	t.Parallel()
	python := os.Getenv("TENDRIL_PYTHON")
	if python == "" {
		python = "python3"
	}
	if out, err := exec.Command(python, "-c", "import boto3").CombinedOutput(); err != nil {
		missingPeer(t, "boto3 for "+python, "set TENDRIL_PYTHON to a Python that has it", out, err)
	}
	runPeer(t, exec.Command(python, "testdata/boto3_test.py"))
}

func TestJavaScriptSDK(t *testing.T) {
	t.Parallel()
	modules := os.Getenv("TENDRIL_NODE_MODULES")
	if modules == "" {
		missingPeer(t, "@aws-sdk/client-sqs", "set TENDRIL_NODE_MODULES to a node_modules folder that has it", nil, nil)
	}
	// Node looks for modules beside the script and above, so the script runs
	// from a folder beside a link to the modules.
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/js/sqs_test.mjs")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "sqs_test.mjs"), script, 0o600); err != nil {
		t.Fatal(err)
	}
	absolute, err := filepath.Abs(modules)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(absolute, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	probe := exec.Command("node", "-e", "require('@aws-sdk/client-sqs')")
	probe.Dir = dir
	if out, err := probe.CombinedOutput(); err != nil {
		missingPeer(t, "node with @aws-sdk/client-sqs", "set TENDRIL_NODE_MODULES to a node_modules folder that has it", out, err)
	}
	runPeer(t, exec.Command("node", filepath.Join(dir, "sqs_test.mjs")))
}

// missingPeer ends the test.
func missingPeer(t *testing.T, what, how string, out []byte, err error) {
	t.Helper()
	last := ""
	if lines := strings.Split(strings.TrimSpace(string(out)), "\n"); len(lines) > 0 {
		last = lines[len(lines)-1]
	}
	if os.Getenv("TENDRIL_REQUIRE_PEERS") == "1" {
		t.Fatalf("%s is required and missing: %s (%v %s)", what, how, err, last)
	}
	t.Skipf("NOT PROVED: %s is missing, so its compatibility was not tested; %s (%v %s)", what, how, err, last)
}

// runPeer runs a client's script against a fresh server.
func runPeer(t *testing.T, command *exec.Cmd) {
	t.Helper()
	url := newServer(t, newHandler(t, nil))
	command.Env = append(os.Environ(),
		"AWS_ENDPOINT_URL_SQS="+url, "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=test", "AWS_SECRET_ACCESS_KEY=test",
		"AWS_CONFIG_FILE=/dev/null", "AWS_SHARED_CREDENTIALS_FILE=/dev/null", "AWS_EC2_METADATA_DISABLED=true",
		"PYTHONDONTWRITEBYTECODE=1", "NO_PROXY=127.0.0.1", "no_proxy=127.0.0.1")
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", command, err, out)
	}
}
