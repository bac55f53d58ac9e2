// Package settings checks, explains and changes settings.
package settings
