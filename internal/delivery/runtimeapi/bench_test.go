package runtimeapi

import (
	"context"
	"os"
	"testing"
)

// BenchmarkInvoke is one invocation after the other of a real process that
// answers at once: what the Runtime API costs.
func BenchmarkInvoke(b *testing.B) {
	p, err := New(Options{Command: []string{os.Args[0]}, Env: functionEnv("function", "")})
	if err != nil {
		b.Fatal(err)
	}
	p.Start()
	defer p.Stop(context.Background())
	for b.Loop() {
		if a, err := p.Invoke(context.Background(), []byte("x")); err != nil || a.FunctionError != "" {
			b.Fatal(a, err)
		}
	}
}
