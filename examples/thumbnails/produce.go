package main

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

type job struct {
	Image string `json:"image"` // a file name in the source folder
	Width int    `json:"width"` // in pixels, 16 to 1024
}

const (
	burst  = 24
	most   = 60 // after which numbers repeat
	pause  = 2 * time.Second
	wide   = 960
	high   = 640
	narrow = 240
)

// produce queues a burst of jobs, then one every two seconds until ctx is done. Region, endpoint and credentials come
// from the environment.
func produce(ctx context.Context, dir, queueURL string) error {
	cfg, err := config.LoadDefaultConfig(ctx)
	if err != nil {
		return err
	}

	client := sqs.NewFromConfig(cfg)
	for n := 0; ; n++ {
		if n >= burst {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		name := fmt.Sprintf("%03d-%s.png", n%most, moods[n%len(moods)].name)
		if err := writePNG(filepath.Join(dir, "source", name), draw(uint64(n), wide, high)); err != nil {
			return err
		}
		body, err := json.Marshal(job{Image: name, Width: narrow})
		if err != nil {
			return err
		}
		text := string(body)
		if _, err := client.SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: &queueURL, MessageBody: &text}); err != nil {
			return fmt.Errorf("sending the job for %s: %w", name, err)
		}
	}
}
