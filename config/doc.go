// Package config reads the settings, knows where each came from, and refuses bad ones with advice.
package config
