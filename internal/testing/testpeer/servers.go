package testpeer

import (
	"cmp"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const (
	motoVersion      = "5.2.5"
	elasticMQVersion = "1.7.1"
	miniStackVersion = "1.5.33"
	dynaliteVersion  = "4.0.0"
)

// Moto starts moto, an emulator of AWS, with services such as "sqs" and "dynamodb", until the end of the test. Its
// threads share no lock, so operations that are atomic on AWS may not be.
func Moto(t testing.TB, services ...string) (endpoint string) {
	t.Helper()
	modules := []string{"moto.server"}
	for _, service := range services {
		modules = append(modules, "moto."+service+".models")
	}
	install := "moto[server," + strings.Join(services, ",") + "]==" + motoVersion
	python := Python(t, install, modules...)
	wantVersion(t, "moto", pythonVersion(python, "moto"), motoVersion)
	port := FreePort(t)
	endpoint = serve(t, exec.Command(python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port), port)
	for _, service := range services {
		load(t, endpoint, service)
	}
	return endpoint
}

// load sends the first request to a service, which moto loads meanwhile. That can take longer than callers wait.
func load(t testing.TB, moto, service string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, moto+"/", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=local/20261120/us-east-1/"+service+"/aws4_request")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatalf("loading %s: %v", service, err)
	}
	resp.Body.Close()
}

// CreateBucket creates an S3 bucket on moto.
func CreateBucket(t testing.TB, moto, name string) {
	t.Helper()
	create, err := http.NewRequestWithContext(t.Context(), http.MethodPut, moto+"/"+name, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(create)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("creating the bucket %s: %s", name, resp.Status)
	}
}

// ElasticMQ starts ElasticMQ, an SQS server in Scala, until the end of the test.
func ElasticMQ(t testing.TB) (endpoint string) {
	t.Helper()
	const variable = "TENDRIL_JAVA_ELASTICMQ"
	install := "copy the dependencies of internal/testing/testpeer/testdata/elasticmq/pom.xml into a folder"
	classPath := Jars(t, variable, install)
	jar := filepath.Join(filepath.Dir(classPath), "elasticmq-server_2.13-"+elasticMQVersion+".jar")
	if _, err := os.Stat(jar); err != nil {
		Missing(t, "ElasticMQ "+elasticMQVersion, install+", and set "+variable+" to the folder")
	}
	port := FreePort(t)
	return serve(t, exec.Command("java", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx256m",
		"-Drest-sqs.bind-hostname=127.0.0.1", "-Drest-sqs.bind-port="+port, "-Drest-stats.enabled=false",
		"-Dnode-address.host=127.0.0.1", "-Dnode-address.port="+port,
		"-cp", classPath, "org.elasticmq.server.Main"), port)
}

// MiniStack starts MiniStack, an emulator of AWS in Python with SQS and DynamoDB, until the end of the test.
func MiniStack(t testing.TB) (endpoint string) {
	t.Helper()
	python := python(t, "TENDRIL_PYTHON_MINISTACK", "", "ministack=="+miniStackVersion, []string{"ministack"})
	wantVersion(t, "ministack", pythonVersion(python, "ministack"), miniStackVersion)
	port := FreePort(t)
	ministack := exec.Command(python, "-m", "ministack")
	ministack.Env = append(os.Environ(), "GATEWAY_PORT="+port, "BIND_HOST=127.0.0.1", "MINISTACK_HOST=127.0.0.1",
		"IOT_MTLS_ENABLED=0", "STATE_DIR="+t.TempDir())
	return serve(t, ministack, port)
}

// Dynalite starts dynalite, a DynamoDB server in JavaScript, until the end of the test.
func Dynalite(t testing.TB) (endpoint string) {
	t.Helper()
	folder := filepath.Join(NodeModules(t, "dynalite"), "dynalite")
	var about struct{ Version string }
	text, err := os.ReadFile(filepath.Join(folder, "package.json"))
	if err := cmp.Or(err, json.Unmarshal(text, &about)); err != nil {
		t.Fatal(err)
	}
	wantVersion(t, "dynalite", about.Version, dynaliteVersion)
	port := FreePort(t)
	return serve(t, exec.Command("node", filepath.Join(folder, "cli.js"), "--host", "127.0.0.1", "--port", port,
		"--createTableMs", "0", "--updateTableMs", "0", "--deleteTableMs", "0"), port)
}

func pythonVersion(python, name string) string {
	version, _ := runPython(python, "import importlib.metadata as m; print(m.version('"+name+"'))")
	return version
}

func wantVersion(t testing.TB, name, got, want string) {
	t.Helper()
	if got != want {
		Missing(t, name+" "+want, "there is "+got)
	}
}

func serve(t testing.TB, server *exec.Cmd, port string) (endpoint string) {
	t.Helper()
	said := new(Output)
	server.Stdout, server.Stderr = said, said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = server.Wait()
		close(ended)
	}()
	t.Cleanup(func() {
		_ = server.Process.Kill()
		<-ended
	})
	const patience = 2 * time.Minute // Java starts slowly if the machine is busy
	limit := time.After(patience)
	for {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
			return "http://127.0.0.1:" + port
		}
		select {
		case <-ended:
			t.Fatalf("%v ended before it listened: %v\n%s", server.Args, server.ProcessState, said)
		case <-limit:
			t.Fatalf("%v did not listen on port %s within %s\n%s", server.Args, port, patience, said)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
