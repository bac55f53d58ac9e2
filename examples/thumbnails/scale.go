package main

import (
	"image"
	"image/color"
)

// scale makes each pixel the average of its source pixels.
func scale(img image.Image, width int) *image.RGBA {
	from := img.Bounds()
	height := max(1, from.Dy()*width/from.Dx())
	to := image.NewRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		top, bottom := from.Min.Y+y*from.Dy()/height, from.Min.Y+(y+1)*from.Dy()/height
		for x := range width {
			left, right := from.Min.X+x*from.Dx()/width, from.Min.X+(x+1)*from.Dx()/width
			to.SetRGBA(x, y, average(img, image.Rect(left, top, max(right, left+1), max(bottom, top+1))))
		}
	}
	return to
}

func average(img image.Image, r image.Rectangle) color.RGBA {
	var red, green, blue, alpha, n uint32
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			cr, cg, cb, ca := img.At(x, y).RGBA()
			red, green, blue, alpha, n = red+cr>>8, green+cg>>8, blue+cb>>8, alpha+ca>>8, n+1
		}
	}
	return color.RGBA{uint8(red / n), uint8(green / n), uint8(blue / n), uint8(alpha / n)}
}
