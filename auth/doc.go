// Package auth says who may call the gateway and what the gateway sends to Eve to authenticate itself.
package auth
