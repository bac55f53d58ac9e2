package runtimeapi

import (
	"context"
	"os"
	"testing"
)

func BenchmarkInvoke(b *testing.B) {
	p, err := New(Options{Command: []string{os.Args[0]}, Env: functionEnv("function", "")})
	if err != nil {
		b.Fatal(err)
	}
	p.Start()
	defer p.Stop(context.Background())
	for b.Loop() {
		if a, err := p.Invoke(context.Background(), []byte("x"), nil); err != nil || a.FunctionError != "" {
			b.Fatal(a, err)
		}
	}
}
