// Package deploy changes the version of the app, its processes and its settings while it runs.
package deploy
