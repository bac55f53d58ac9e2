package main

import (
	"image"
	"image/color"
	"image/png"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestScaleAverages(t *testing.T) {
	t.Parallel()
	img := image.NewRGBA(image.Rect(10, 10, 14, 12)) // not at the origin
	for x := 10; x < 14; x++ {
		for y := 10; y < 12; y++ {
			img.SetRGBA(x, y, color.RGBA{uint8(100 * (x % 2)), 200, 0, 255})
		}
	}
	small := scale(img, 2)
	if got := small.Bounds(); got != image.Rect(0, 0, 2, 1) {
		t.Fatalf("bounds %v, want 2x1", got)
	}
	if got, want := small.RGBAAt(0, 0), (color.RGBA{50, 200, 0, 255}); got != want {
		t.Errorf("average of 0 and 100 is %v, want %v", got, want)
	}
	if up := scale(img, 8).Bounds().Size(); up != (image.Point{8, 4}) {
		t.Errorf("enlarged to %v", up)
	}
}

func TestDrawIsTheSameForASeed(t *testing.T) {
	t.Parallel()
	a, b, other := draw(3, 60, 40), draw(3, 60, 40), draw(9, 60, 40)
	if string(a.Pix) != string(b.Pix) {
		t.Error("one seed gave two pictures")
	}
	if string(a.Pix) == string(other.Pix) {
		t.Error("two seeds of one mood gave the same picture")
	}
}

func TestJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "source"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writePNG(filepath.Join(dir, "source", "001-dawn.png"), draw(1, 96, 64)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "source", "broken.png"), []byte("no picture"), 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(newApp(dir))
	t.Cleanup(server.Close)
	for body, want := range map[string]int{
		`{"image":"001-dawn.png","width":24}`:    200,
		`{"image":"none.png","width":24}`:        404,
		`{"image":"broken.png","width":24}`:      500,
		`{"image":"../001-dawn.png","width":24}`: 400,
		`{"image":"001-dawn.png","width":0}`:     400,
		`hello`:                                  400,
	} {
		resp, err := http.Post(server.URL, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", body, resp.StatusCode, want)
		}
	}
	f, err := os.Open(filepath.Join(dir, "001-dawn.png"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if cfg, err := png.DecodeConfig(f); err != nil || cfg.Width != 24 || cfg.Height != 16 {
		t.Errorf("thumbnail is %dx%d, %v; want 24x16", cfg.Width, cfg.Height, err)
	}
	resp, err := http.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), "1 thumbnails") || !strings.Contains(string(text), `alt="001-dawn.png"`) {
		t.Errorf("the gallery does not show the thumbnail: %s", string(text))
	}
}
