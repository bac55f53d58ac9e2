package main

import (
	"image"
	"image/color"
	"math"
	"math/rand/v2"
)

// mood is the color scheme of a scene: sky from top to horizon, sun or moon, far and near hills.
type mood struct {
	name               string
	top, horizon, disc color.RGBA
	far, near          color.RGBA
	stars              bool
}

var moods = []mood{
	{"dawn", rgb(0x2b3a67), rgb(0xf7b267), rgb(0xfff1d0), rgb(0x7d6b91), rgb(0x2e294e), false},
	{"morning", rgb(0x6fb7e9), rgb(0xfde8c9), rgb(0xffffff), rgb(0x9fc2b2), rgb(0x3b6b5a), false},
	{"noon", rgb(0x2f86d6), rgb(0xcfeaf7), rgb(0xfffbe0), rgb(0x8fb996), rgb(0x2f5d3a), false},
	{"evening", rgb(0x3d2c5e), rgb(0xf25f5c), rgb(0xffe066), rgb(0x8a4f7d), rgb(0x2a1f3d), false},
	{"dusk", rgb(0x14213d), rgb(0x9d6b9d), rgb(0xf4d9c6), rgb(0x4a4e69), rgb(0x191923), true},
	{"night", rgb(0x050a1e), rgb(0x1d3461), rgb(0xf2f4ff), rgb(0x16284b), rgb(0x05070f), true},
}

func rgb(hex uint32) color.RGBA {
	return color.RGBA{uint8(hex >> 16), uint8(hex >> 8), uint8(hex), 0xff}
}

// draw paints a landscape. The same seed gives the same picture.
func draw(seed uint64, width, height int) *image.RGBA {
	m := moods[seed%uint64(len(moods))]
	dice := rand.New(rand.NewPCG(seed, 7))
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	horizon := float64(height) * (0.55 + 0.15*dice.Float64())
	paintSky(img, m, horizon)
	if m.stars {
		paintStars(img, dice, horizon)
	}
	paintDisc(img, m.disc, float64(width)*(0.2+0.6*dice.Float64()), horizon*(0.25+0.5*dice.Float64()),
		float64(height)*(0.05+0.05*dice.Float64()))
	const ranges = 4

	for i := range ranges {
		depth := float64(i) / (ranges - 1)
		base := horizon + depth*(float64(height)-horizon)*0.75
		paintHills(img, mix(m.far, m.near, depth), base, float64(height)*(0.05+0.08*dice.Float64()), dice)
	}
	return img
}

func paintSky(img *image.RGBA, m mood, horizon float64) {
	size := img.Bounds().Size()
	for y := range size.Y {
		c := mix(m.top, m.horizon, math.Min(1, float64(y)/horizon))
		for x := range size.X {
			img.SetRGBA(x, y, c)
		}
	}
}

func paintStars(img *image.RGBA, dice *rand.Rand, horizon float64) {
	size := img.Bounds().Size()
	for range 180 {
		x, y := dice.IntN(size.X), dice.IntN(int(horizon*0.8)+1)
		img.SetRGBA(x, y, mix(img.RGBAAt(x, y), rgb(0xffffff), 0.4+0.6*dice.Float64()))
	}
}

func paintDisc(img *image.RGBA, c color.RGBA, cx, cy, radius float64) {
	size := img.Bounds().Size()
	for y := range size.Y {
		for x := range size.X {
			d := math.Hypot(float64(x)-cx, float64(y)-cy) / radius
			switch {
			case d < 1:
				img.SetRGBA(x, y, mix(img.RGBAAt(x, y), c, math.Min(1, (1-d)*radius)))
			case d < 4:
				img.SetRGBA(x, y, mix(img.RGBAAt(x, y), c, 0.35*math.Pow(1-(d-1)/3, 2)))
			}
		}
	}
}

// paintHills fills the area below a sum of waves.
func paintHills(img *image.RGBA, c color.RGBA, base, relief float64, dice *rand.Rand) {
	size := img.Bounds().Size()
	type wave struct{ length, phase, height float64 }
	var waves []wave
	for i := range 5 {
		waves = append(waves,
			wave{float64(size.X) / (0.8 + float64(i)*1.7*(0.7+dice.Float64())), dice.Float64() * 2 * math.Pi,
				relief / float64(i+1)})
	}

	for x := range size.X {
		crest := base
		for _, w := range waves {
			crest -= w.height * math.Sin(float64(x)/w.length*2*math.Pi+w.phase)
		}
		for y := max(0, int(crest)); y < size.Y; y++ {
			shade := math.Min(1, (float64(y)-crest)/float64(size.Y)*1.6)
			img.SetRGBA(x, y, mix(c, rgb(0x000000), 0.35*shade))
		}
	}
}

func mix(a, b color.RGBA, t float64) color.RGBA {
	part := func(x, y uint8) uint8 { return uint8(math.Round(float64(x) + (float64(y)-float64(x))*t)) }
	return color.RGBA{part(a.R, b.R), part(a.G, b.G), part(a.B, b.B), 0xff}
}
