//go:build !race

package deliver

const underRace = false
