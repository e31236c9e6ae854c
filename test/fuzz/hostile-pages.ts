/*
 * Pages of a megabyte that are made to cost as much as they can: what a parser keeps, nests, looks back
 * for, compares with all that came before, or builds a character at a time. By name, as bytes.
 */

export const hostileBytes = 1_000_000

/** `unit` over and over, between two texts. */
const over = (unit: string, before = '', after = ''): Buffer => {
  const room = hostileBytes - Buffer.byteLength(before + after)
  return Buffer.concat([Buffer.from(before), Buffer.alloc(room, unit), Buffer.from(after)])
}

/** Units that differ by their number. */
const numbered = (unit: (index: number) => string, before = ''): Buffer => {
  const units = [before]
  for (let length = 0, index = 0; length < hostileBytes; index++) {
    units.push(unit(index))
    length += unit(index).length
  }
  return Buffer.from(units.join('')).subarray(0, hostileBytes)
}

const repeated = [
  '<| |a|a |&|\0|\r|\r\n|]]>|"|</|<?|<!|<!-|<!--|<!-->|<!doctype a>|<![CDATA[|<a |<a b="|</a>|</svg>',
  '<b>|<p>|<div>|<h1>|<h1>a</h1>|<br>|<title>|<title></title>|<meta>|<link>|<base href=x>|<html lang=x>',
  '<svg>|<svg/>|<svg><desc>|<svg><title>a</title></svg>|<svg><p>|<math>|<math><mi>|<template>',
  '<math><annotation-xml encoding=text/html>|<font color=a>|<script>|<style>|<noscript>|<textarea>',
  '<plaintext>|<iframe></iframe>|<table>|<select>|<form>|<a><table>|<script></script>|<xmp>',
  '&amp;|&am|&#|&#1|&#x|&notin|&notit;|&#xD800;|&CounterClockwiseContourIntegra|\u{1F600}|\u0301|\u200D',
  '<meta charset=x>|<meta name=description>|<meta property=og:image content=x:>|<link rel=canonical href=//>',
  '<meta property="a b c d e f og:title" content=a>|<meta http-equiv=content-type content=charset>',
]
  .flatMap((line) => line.split('|'))
  .map((unit) => [`${JSON.stringify(unit)} over and over`, over(unit)] as const)

const inside = [
  ['<!--', 'a|-|- |--!|<!|<!-|\0|\r|\u{1F600}'],
  ['<a b="', "a|&|&amp;|&a=|\0|\r|'|>|\u{1F600}"],
  ['<a ', 'a|=|"|/ |a |a=b | a=b|\0'],
  ['<', 'a|A|\0|\u{1F600}'],
  ['<title>', 'a| |</|</titl|</title |&|&amp;|\0|\r|a |\u0301|\u200D|\uFE0F|\u{1F600}|\u202E'],
  ['<h1>', 'a |<br>|<b>|</b>|\u0301 '],
  ['<script>', '<|</scrip|<!--<script>|-'],
  ['<script><!--', '-|<script>|</script'],
  ['<svg>', '</x>|</svg|<![CDATA[x]]>|\0a|<title>|<font>|<a/>'],
  ['<svg><![CDATA[', ']|]]|]>|a'],
  ['<!doctype ', 'a|"'],
  ['<!doctype html public "', 'a|\0'],
  ['<?xml ', ' encoding=|encoding="'],
  ['<meta name=description content="', 'a| |\u00AD|\u{1F468}\u200D'],
  ['<meta http-equiv=content-type content="', 'charset |charset=|charset="'],
  ['<meta charset="', 'a|;| '],
  ['<base href="', '../|a|/|@'],
  ['<link rel=canonical href="', '../|a|/|@|%'],
  ['<svg>'.repeat(99), '</x>|<a>'],
  ['<template>'.repeat(99), '</x>|<title>'],
] as const

const nested = inside.flatMap(([before, units]) =>
  units
    .split('|')
    .map(
      (unit) =>
        [`${before.slice(0, 30)} then ${JSON.stringify(unit)}`, over(unit, before)] as const,
    ),
)

export const hostilePages: readonly (readonly [string, Buffer])[] = [
  ...repeated,
  ...nested,
  ['a tag of 100,000 attributes', numbered((index) => ` a${index}`, '<a')],
  ['a <meta> of 100,000 attributes', numbered((index) => ` a${index}=b`, '<meta')],
  ['100,000 names of tags', numbered((index) => `<a${index}>`)],
  ['100,000 names of <meta>', numbered((index) => `<meta name=a${index} content=b>`)],
  ['a value of a megabyte', over('x', '<meta name=description content="', '">')],
  ['a rel of a megabyte', over('a ', '<link href=x rel="', '">')],
  ['an address of a megabyte', over('x', '<meta property=og:image content="/', '">')],
]
