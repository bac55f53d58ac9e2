package main

import (
	"context"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir := os.Getenv("THUMBNAILS_DIR")
	if dir == "" {
		dir = "out"
	}
	if err := run(ctx, dir, os.Getenv("PORT"), os.Getenv("TENDRIL_QUEUE_URL")); err != nil {
		log.Fatal(err)
	}
}

// run serves until ctx is done. If queueURL is empty, it sends no jobs.
func run(ctx context.Context, dir, port, queueURL string) error {
	if port == "" {
		port = "5000"
	}
	if err := os.MkdirAll(filepath.Join(dir, "source"), 0o755); err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:"+port)
	if err != nil {
		return err
	}

	server := &http.Server{Handler: newApp(dir), ReadHeaderTimeout: 5 * time.Second}
	if queueURL != "" {
		go func() {
			if err := produce(ctx, dir, queueURL); err != nil && ctx.Err() == nil {
				log.Print("no more jobs: ", err)
			}
		}()
	}
	finished := make(chan error, 1)
	go func() {
		<-ctx.Done()
		finished <- server.Shutdown(context.Background()) // after the current job
	}()
	log.Printf("gallery: http://%s/", l.Addr())
	// Serve returns as soon as the shutdown starts.
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-finished
}
