// Command function is a Lambda function built with aws-lambda-go. The event selects how it ends.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambdacontext"
)

func main() {
	lambda.StartWithOptions(handle, lambda.WithEnableSIGTERM(func() { fmt.Println("bye"); os.Exit(0) }))
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

func handle(ctx context.Context, how string) (any, error) {
	switch how {
	case "context":
		lc, _ := lambdacontext.FromContext(ctx)
		deadline, _ := ctx.Deadline()
		return map[string]any{
			"id": lc.AwsRequestID, "arn": lc.InvokedFunctionArn, "name": lambdacontext.FunctionName, "memory": lambdacontext.MemoryLimitInMB,
			"version": lambdacontext.FunctionVersion, "left": time.Until(deadline) > 0, "trace": os.Getenv("_X_AMZN_TRACE_ID"),
		}, nil
	case "error":
		return nil, errors.New("no such customer")
	case "panic":
		panic("out of cheese")
	case "exit":
		os.Exit(4)
	case "hang":
		select {}
	case "large":
		return strings.Repeat("x", 7<<20), nil
	case "half":
		return io.MultiReader(strings.NewReader("half an ans"), broken{}), nil
	}
	return how, nil
}
