// Command lambda-resize is a Lambda function that resizes PNG files, one per message. It only depends on aws-lambda-go,
// so the same binary runs in the cloud.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"log"
	"os"
	"path/filepath"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"
)

func main() { lambda.Start(handle) }

type order struct {
	Source string `json:"source"`
	Target string `json:"target"`
	Width  int    `json:"width"`
}

// handle lists the failed messages in the answer, so that they are delivered again.
func handle(_ context.Context, batch events.SQSEvent) (events.SQSEventResponse, error) {
	var answer events.SQSEventResponse
	for _, record := range batch.Records {
		if err := resize(record.Body); err != nil {
			log.Printf("message %s: %v", record.MessageId, err)
			answer.BatchItemFailures = append(answer.BatchItemFailures,
				events.SQSBatchItemFailure{ItemIdentifier: record.MessageId})
		}
	}
	return answer, nil
}

// resize is idempotent, because it replaces the file atomically.
func resize(body string) error {
	var o order
	if err := json.Unmarshal([]byte(body), &o); err != nil {
		return fmt.Errorf("reading the order: %w", err)
	}
	if o.Width < 1 || o.Width > 4096 {
		return errors.New("the width has to be 1 to 4096")
	}
	file, err := os.Open(o.Source)
	if err != nil {
		return err
	}

	defer file.Close()
	source, err := png.Decode(file)
	if err != nil {
		return err
	}
	return save(shrink(source, o.Width), o.Target)
}

func shrink(source image.Image, width int) image.Image {
	from := source.Bounds()
	height := max(1, from.Dy()*width/from.Dx())
	target := image.NewRGBA64(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			target.SetRGBA64(x, y, average(source, image.Rect(
				from.Min.X+x*from.Dx()/width, from.Min.Y+y*from.Dy()/height,
				from.Min.X+max((x+1)*from.Dx()/width, x*from.Dx()/width+1),
				from.Min.Y+max((y+1)*from.Dy()/height, y*from.Dy()/height+1))))
		}
	}
	return target
}

func average(source image.Image, part image.Rectangle) color.RGBA64 {
	var r, g, b, a, n uint64
	for y := part.Min.Y; y < part.Max.Y; y++ {
		for x := part.Min.X; x < part.Max.X; x++ {
			pr, pg, pb, pa := source.At(x, y).RGBA()
			r, g, b, a, n = r+uint64(pr), g+uint64(pg), b+uint64(pb), a+uint64(pa), n+1
		}
	}
	return color.RGBA64{R: uint16(r / n), G: uint16(g / n), B: uint16(b / n), A: uint16(a / n)}
}

func save(picture image.Image, target string) error {
	file, err := os.CreateTemp(filepath.Dir(target), "."+filepath.Base(target)+"-*")
	if err != nil {
		return err
	}
	defer os.Remove(file.Name()) // no effect after the rename
	if err := png.Encode(file, picture); err != nil {
		return errors.Join(err, file.Close())
	}

	if err := file.Close(); err != nil {
		return err
	}
	return os.Rename(file.Name(), target)
}
