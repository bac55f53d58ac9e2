// Package inspect reports the state and history of environments.
//
// If no environment is running, describe and doctor examine the environment that 'tendril up' would start; events and
// logs read the last one's files.
package inspect
