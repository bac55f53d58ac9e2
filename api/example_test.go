package api_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http/httptest"
	"os"
	"strings"

	"tendril/api"
	"tendril/internal/console"
)

func ExampleDial() {
	dataDir, stop := startEnvironment()
	defer stop()

	client, err := api.Dial(dataDir)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	status, err := client.Status(context.Background())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(status.Environment, "is", status.State)
	// Output: shop is running
}

func ExampleError() {
	dataDir, stop := startEnvironment()
	defer stop()

	client, err := api.Dial(dataDir)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	_, err = client.Queues(context.Background())
	var refusal *api.Error
	if errors.As(err, &refusal) {
		fmt.Println(refusal.Status, refusal.Message)
	}
	// Output: 409 this environment has no embedded queues
}

func startEnvironment() (dataDir string, stop func()) {
	dataDir, err := os.MkdirTemp("", "shop")
	if err != nil {
		log.Fatal(err)
	}
	token := api.NewToken()
	handler := console.New(&console.Options{Environment: "shop", Token: token,
		Status: func() api.Status { return api.Status{State: api.StateRunning} }})
	server := httptest.NewServer(handler)
	release, err := api.Claim(dataDir)
	if err != nil {
		log.Fatal(err)
	}
	instance := api.Instance{PID: os.Getpid(), Environment: "shop", Console: strings.TrimPrefix(server.URL, "http://")}
	if err := errors.Join(instance.Write(dataDir), api.WriteToken(dataDir, token)); err != nil {
		log.Fatal(err)
	}
	return dataDir, func() {
		handler.Close()
		server.Close()
		_ = release()
		_ = os.RemoveAll(dataDir)
	}
}
