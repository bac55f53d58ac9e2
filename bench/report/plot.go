package main

import (
	"encoding/xml"
	"fmt"
	"math"
	"strings"
)

// plot is a chart of grouped horizontal bars. A line on each bar extends from the lowest to the highest result of the
// rounds.
type plot struct {
	name, title string // file name without .svg, and heading
	groups      []group
}

type group struct {
	label string
	bars  []bar
}

// bar is one bar. Bars with the same label have the same color in all groups.
type bar struct {
	label string
	cell  cell
}

const (
	plotWidth  = 900
	plotLeft   = 190
	plotRight  = 290
	barHeight  = 15
	groupSpace = 14
	plotTop    = 44
)

// colours can be told apart with red-green color blindness.
var colours = []string{"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"}

// svg draws the chart. Bars without results are left out.
func (p *plot) svg(all *results) string {
	var body strings.Builder
	colour := map[string]string{}
	y, most := plotTop, p.most(all)
	for _, g := range p.groups {
		began := y
		for _, b := range g.bars {
			s := b.cell.sample(all)
			if len(s) == 0 {
				continue
			}
			if colour[b.label] == "" {
				colour[b.label] = colours[len(colour)%len(colours)]
			}
			drawBar(&body, y, s, most, colour[b.label], b.label+" "+b.cell.text(all))
			y += barHeight + 3
		}
		if y > began {
			text(&body, plotLeft-10, (began+y)/2+3, "end", 12, g.label)
			y += groupSpace
		}
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" `+
		`font-family="sans-serif" role="img"><title>%s</title>`+"\n"+`<rect width="100%%" height="100%%" fill="#fff"/>`+"\n",
		plotWidth, y, plotWidth, y, escape(p.title)) + heading(p.title) + body.String() + "</svg>\n"
}

func (p *plot) most(all *results) (most float64) {
	for _, g := range p.groups {
		for _, b := range g.bars {
			if s := b.cell.sample(all); len(s) > 0 {
				most = math.Max(most, s.highest())
			}
		}
	}
	return most
}

func heading(title string) string {
	var b strings.Builder
	text(&b, 16, 26, "start", 15, title)
	return b.String()
}

func drawBar(b *strings.Builder, y int, s sample, most float64, colour, label string) {
	at := func(v float64) float64 { return plotLeft + v/most*(plotWidth-plotLeft-plotRight) }
	fmt.Fprintf(b, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLeft, y,
		math.Max(at(s.median())-plotLeft, 1), barHeight, colour)
	if s.highest() > s.lowest() {
		fmt.Fprintf(b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#222" stroke-width="1.5"/>`+"\n",
			at(s.lowest()), at(s.highest()), y+barHeight/2, y+barHeight/2)
	}
	text(b, int(at(s.highest()))+6, y+barHeight-4, "start", 11, label)
}

func text(b *strings.Builder, x, y int, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%d" y="%d" text-anchor="%s" font-size="%d" fill="#222">%s</text>`+"\n", x, y, anchor, size,
		escape(s))
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder returns no errors
	return b.String()
}
