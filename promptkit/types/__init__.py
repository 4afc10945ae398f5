"""Types of arguments: conversion of text and JSON to typed values, and back."""
