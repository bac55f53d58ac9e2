package main

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

func TestHandle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, target := filepath.Join(dir, "in.png"), filepath.Join(dir, "out.png")
	picture := image.NewGray(image.Rect(5, 5, 13, 9)) // not at the origin
	for x := 5; x < 13; x += 2 {
		for y := 5; y < 9; y++ {
			picture.SetGray(x, y, color.Gray{Y: 200})
		}
	}
	if err := save(picture, source); err != nil {
		t.Fatal(err)
	}
	answer, err := handle(t.Context(), events.SQSEvent{Records: []events.SQSMessage{
		{MessageId: "good", Body: fmt.Sprintf(`{"source":%q,"target":%q,"width":2}`, source, target)},
		{MessageId: "no order", Body: "{"},
		{MessageId: "no width", Body: fmt.Sprintf(`{"source":%q,"target":%q}`, source, target)},
		{MessageId: "no source", Body: fmt.Sprintf(`{"source":%q,"target":%q,"width":2}`, target+"x", target)},
	}})
	if err != nil || fmt.Sprint(answer.BatchItemFailures) != "[{no order} {no width} {no source}]" {
		t.Errorf("%v, %v", answer.BatchItemFailures, err)
	}
	file, err := os.Open(target)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	small, err := png.Decode(file)
	if err != nil {
		t.Fatal(err)
	}
	if size := small.Bounds().Size(); size != image.Pt(2, 1) {
		t.Errorf("size %v", size)
	}
	if r, _, _, _ := small.At(0, 0).RGBA(); r>>8 != 100 {
		t.Errorf("a mean of %d, want 100", r>>8)
	}
	if files, _ := filepath.Glob(filepath.Join(dir, ".*")); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}
