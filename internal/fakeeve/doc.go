// Package fakeeve is a faithful, scripted Eve server: the other side of every test, demo and benchmark.
//
// It speaks the HTTP surface of the Eve contract, stream versions 21 to 27.
package fakeeve
