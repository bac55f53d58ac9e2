package runtimeapi

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"tendril/internal/testing/testpeer"
)

func buildFunctions(t *testing.T, packages ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	build := exec.Command("go", append([]string{"build", "-o", dir + "/"}, packages...)...)
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

func sqsEvent(pairs ...string) string {
	type record struct {
		ID     string `json:"messageId"`
		Body   string `json:"body"`
		Source string `json:"eventSource"`
	}
	var records []record
	for i := 0; i+1 < len(pairs); i += 2 {
		records = append(records, record{pairs[i], pairs[i+1], "aws:sqs"})
	}
	text, _ := json.Marshal(map[string]any{"Records": records})
	return string(text)
}

func TestGoFunction(t *testing.T) {
	t.Parallel()
	bin := buildFunctions(t, "./testdata/function", "tendril/examples/lambda-resize")
	t.Run("outcomes", func(t *testing.T) { t.Parallel(); goOutcomes(t, filepath.Join(bin, "function")) })
	t.Run("time limit", func(t *testing.T) {
		t.Parallel()
		p := runPool(t, Options{Command: []string{filepath.Join(bin, "function")}, Timeout: 2 * time.Second})
		wantError(t, invoke(t, p, `"hang"`), "Sandbox.Timedout", "2.00 seconds")
	})
	t.Run("example", func(t *testing.T) { t.Parallel(); resizeExample(t, filepath.Join(bin, "lambda-resize")) })
}

func goOutcomes(t *testing.T, program string) {
	var mu sync.Mutex
	var output strings.Builder
	p := runPool(t, Options{Command: []string{program}, Name: "go-function",
		Output: func(_ int, _ string, line []byte) {
			mu.Lock()
			defer mu.Unlock()
			output.Write(append(line, '\n'))
		}})
	if a := invoke(t, p, `"hello"`); string(a.Payload) != `"hello"` || a.FunctionError != "" {
		t.Errorf("%+v", a)
	}
	a := invoke(t, p, `"context"`)
	var reported map[string]any
	if err := json.Unmarshal(a.Payload, &reported); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]any{"id": a.RequestID,
		"arn":  "arn:aws:lambda:us-east-1:000000000000:function:go-function",
		"name": "go-function", "memory": 128.0, "version": "$LATEST", "left": true} {
		if reported[key] != want {
			t.Errorf("%s: %v, want %v", key, reported[key], want)
		}
	}
	if trace, _ := reported["trace"].(string); !strings.HasPrefix(trace, "Root=1-") {
		t.Errorf("trace %q", trace)
	}
	wantError(t, invoke(t, p, `"error"`), "errorString", "no such customer")
	wantError(t, invoke(t, p, `"panic"`), "string", "out of cheese", "stackTrace")
	wantError(t, invoke(t, p, `"exit"`), "Runtime.ExitError", "exit status 4")
	wantError(t, invoke(t, p, `"large"`), "Function.ResponseSizeTooLarge", "6291556 bytes")
	wantError(t, invoke(t, p, `"half"`), "errorString", "the disk is gone")
	wantError(t, invoke(t, p, `{"not":"a string"}`), "UnmarshalTypeError")
	if a := invoke(t, p, `"still here"`); string(a.Payload) != `"still here"` {
		t.Errorf("%+v", a)
	}
	if err := p.Stop(context.Background()); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	if !strings.Contains(output.String(), "bye\n") {
		t.Errorf("it did not get to say good-bye: %s", output.String())
	}
}

func resizeExample(t *testing.T, program string) {
	dir := t.TempDir()
	file, err := os.Create(filepath.Join(dir, "in.png"))
	if err != nil {
		t.Fatal(err)
	}
	if err := png.Encode(file, image.NewGray(image.Rect(0, 0, 40, 20))); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	p := runPool(t, Options{Command: []string{program}, Dir: dir, Instances: 4})
	a := invoke(t, p, sqsEvent("m-1", `{"source":"in.png","target":"out.png","width":10}`, "m-2", "no order"))
	if a.FunctionError != "" || string(a.Payload) != `{"batchItemFailures":[{"itemIdentifier":"m-2"}]}` {
		t.Errorf("%+v: %s", a, a.Payload)
	}
	if a := invoke(t, p,
		sqsEvent("m-1", `{"source":"in.png","target":"out.png","width":10}`)); string(
		a.Payload) != `{"batchItemFailures":null}` {
		t.Errorf("all done: %s", a.Payload)
	}
	out, err := os.ReadFile(filepath.Join(dir, "out.png"))
	if err != nil {
		t.Fatal(err)
	}
	if c, err := png.DecodeConfig(strings.NewReader(string(out))); err != nil || c.Width != 10 || c.Height != 5 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestPythonFunction(t *testing.T) {
	t.Parallel()
	interpreter := testpeer.Python(t, "awslambdaric", "awslambdaric")
	run := func(t *testing.T, handler string, o Options) *Pool {
		o.Command, o.Dir, o.Env = []string{interpreter, "-m", "awslambdaric", handler}, "testdata",
			[]string{"PYTHONDONTWRITEBYTECODE=1"}
		return runPool(t, o)
	}
	t.Run("outcomes", func(t *testing.T) {
		t.Parallel()
		p := run(t, "handler.handle", Options{Name: "py"})
		if a := invoke(t, p,
			sqsEvent("a", "good", "b", "bad")); string(a.Payload) != `{"batchItemFailures": [{"itemIdentifier": "b"}]}` {
			t.Errorf("%+v: %s", a, a.Payload)
		}
		a := invoke(t, p, `{"how":"context"}`)
		want := fmt.Sprintf(`{"id": %q, "arn": "arn:aws:lambda:us-east-1:000000000000:function:py", "left": true}`,
			a.RequestID)
		if string(a.Payload) != want {
			t.Errorf("context %s, want %s", a.Payload, want)
		}
		wantError(t, invoke(t, p, `{"how":"raise"}`), "NoSuchCustomer", "customer 17")
		wantError(t, invoke(t, p, `{"how":"exit"}`), "Runtime.ExitError", "exit status 5")
		wantError(t, invoke(t, p, `no JSON`), "Runtime.UnmarshalError")
	})
	t.Run("time limit", func(t *testing.T) {
		t.Parallel()
		p := run(t, "handler.handle", Options{Timeout: 2 * time.Second})
		wantError(t, invoke(t, p, `{"how":"hang"}`), "Sandbox.Timedout", "2.00 seconds")
	})
	t.Run("no such module", func(t *testing.T) {
		t.Parallel()
		p := run(t, "missing.handle", Options{})
		wantError(t, invoke(t, p, `{}`), "Runtime.ImportModuleError", "missing")
	})
}

func TestPythonExample(t *testing.T) {
	t.Parallel()
	interpreter := testpeer.Program(t, "python3")
	dir := t.TempDir()
	script, err := filepath.Abs("../../../examples/lambda-python/function.py")
	if err != nil {
		t.Fatal(err)
	}
	p := runPool(t, Options{Command: []string{interpreter, script}, Env: []string{"RECEIPTS_DIR=" + dir}, Instances: 2})
	a := invoke(t, p, sqsEvent("m-1", `{"customer":"Ada","items":[{"cents":1250,"count":2}]}`, "m-2", "no order", "m-3",
		`[]`))
	if string(a.Payload) != `{"batchItemFailures": [{"itemIdentifier": "m-2"}, {"itemIdentifier": "m-3"}]}` {
		t.Errorf("%+v: %s", a, a.Payload)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "m-1.txt")); string(text) != "Ada: 25.00\n" {
		t.Errorf("receipt %q, %v", text, err)
	}
	wantError(t, invoke(t, p, `{}`), "KeyError", "Records")
	if a := invoke(t, p, sqsEvent()); a.FunctionError == "" {
		t.Errorf("Records null: %s", a.Payload)
	}
}
