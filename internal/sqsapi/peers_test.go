package sqsapi

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"tendril/internal/testing/testpeer"
)

func TestBoto3(t *testing.T) {
	t.Parallel()
	runPeer(t, exec.Command(testpeer.Python(t, "boto3", "boto3"), "testdata/boto3_test.py"))
}

func TestA8Boto3OfTheQueryProtocol(t *testing.T) {
	t.Parallel()
	runPeer(t, exec.Command(testpeer.QueryPython(t, "boto3==1.26.165", "boto3"), "testdata/boto3_test.py"))
}

func TestCelery(t *testing.T) {
	t.Parallel()
	runCelery(t, testpeer.Python(t, "celery[sqs]", "boto3", "celery", "pycurl"))
}

func TestA8CeleryOfTheQueryProtocol(t *testing.T) {
	t.Parallel()
	runCelery(t, testpeer.QueryPython(t, "boto3==1.26.165 celery==5.3.1 kombu==5.3.1 pycurl==7.49.0", "boto3", "celery",
		"pycurl"))
}

func runCelery(t *testing.T, python string) {
	command := exec.Command(python, "celery_life.py")
	command.Dir = "testdata"
	runPeer(t, command)
}

func TestAWSCommandLine(t *testing.T) {
	t.Parallel()
	python := testpeer.Python(t, "awscli", "awscli")
	runPeer(t, exec.Command("sh", "testdata/awscli_test.sh", python, "-m", "awscli"))
}

func TestJavaSDK(t *testing.T) {
	t.Parallel()
	runJava(t, "TENDRIL_JAVA_SQS", "")
}

func TestA8JavaSDKOfTheQueryProtocol(t *testing.T) {
	t.Parallel()
	runJava(t, "TENDRIL_JAVA_SQS_QUERY", " -Dsdk=2.20.162")
}

func runJava(t *testing.T, variable, version string) {
	jars := testpeer.Jars(t, variable, "mvn -f internal/sqsapi/testdata/java/pom.xml"+version+
		" dependency:copy-dependencies -DoutputDirectory=FOLDER")
	runPeer(t, exec.Command("java", "-cp", jars, "testdata/java/SqsLife.java"))
}

func TestA8AsyncAwsOfPHP(t *testing.T) {
	t.Parallel()
	php := testpeer.Program(t, "php")
	if _, err := os.Stat("/usr/share/php/AsyncAws/Sqs/autoload.php"); err != nil {
		testpeer.Missing(t, "AsyncAws", "apt-get install php-async-aws-sqs")
	}
	runPeer(t, exec.Command(php, "testdata/ordinary_life.php"))
}

func TestA8RubySDKOfTheQueryProtocol(t *testing.T) {
	t.Parallel()
	ruby := testpeer.Program(t, "ruby")
	if exec.Command(ruby, "-e", "require 'aws-sdk-v1'").Run() != nil {
		testpeer.Missing(t, "the SDK for Ruby", "apt-get install ruby-aws-sdk")
	}
	runPeer(t, exec.Command(ruby, "testdata/ordinary_life.rb"))
}

func TestJavaScriptSDK(t *testing.T) {
	t.Parallel()
	runNode(t, "sqs_test.mjs", "@aws-sdk/client-sqs")
}

func TestNodeFetch(t *testing.T) {
	t.Parallel()
	runNode(t, "fetch_test.mjs", "@aws-sdk/client-sqs")
}

func TestSQSConsumer(t *testing.T) {
	t.Parallel()
	runNode(t, "consumer_test.mjs", "@aws-sdk/client-sqs", "sqs-consumer")
}

func runNode(t *testing.T, name string, packages ...string) {
	modules := testpeer.NodeModules(t, packages...)
	// Node looks for modules in the script's directory and its parents, so the script runs beside a link to them.
	dir := t.TempDir()
	script, err := os.ReadFile("testdata/js/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), script, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	runPeer(t, exec.Command("node", filepath.Join(dir, name)))
}

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
