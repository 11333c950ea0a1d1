import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrapMarkdown } from './wrap-markdown.ts'

test('paragraphs and list items are broken between words, under their own text', () => {
  assert.equal(wrapMarkdown('one two three four', 9), 'one two\nthree\nfour')
  assert.equal(wrapMarkdown('- one two three\n1. four five six', 11), '- one two\n  three\n1. four\n   five six')
})

test('what must stay whole does: boxes, tables, headings and words longer than a line', () => {
  const whole = '# a heading that is long\n| a | table that is long |\n```sh\ncurl -H one -H two -H three\n```\n'
  assert.equal(wrapMarkdown(whole, 8), whole)
  assert.equal(wrapMarkdown('see https://example.net/long now', 10), 'see\nhttps://example.net/long\nnow')
})

test('a line that fits is left as it is', () => {
  assert.equal(wrapMarkdown('a  b\n\nc', 80), 'a  b\n\nc')
})
