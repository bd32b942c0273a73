//go:build !go1.26

package seals

var preferred suite = ownSuite{}
