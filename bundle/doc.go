// Package bundle reads an Elastic Beanstalk source bundle.
package bundle
