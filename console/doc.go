// Package console shows the environment in a browser and over a JSON API.
package console
