import assert from 'node:assert/strict'
import { test } from 'node:test'
import { wrapMarkdown } from './wrap-markdown.ts'

test('wraps paragraphs and list items between words, indented to their text', () => {
  assert.equal(wrapMarkdown('one two three four', 9), 'one two\nthree\nfour')
  assert.equal(wrapMarkdown('- one two three\n1. four five six', 11), '- one two\n  three\n1. four\n   five six')
})

test('does not wrap code, tables, headings and words longer than a line', () => {
  const whole = '# a heading that is long\n| a | table that is long |\n```sh\ncurl -H one -H two -H three\n```\n'
  assert.equal(wrapMarkdown(whole, 8), whole)
  assert.equal(wrapMarkdown('see https://example.net/long now', 10), 'see\nhttps://example.net/long\nnow')
})

test('does not change a line that fits', () => {
  assert.equal(wrapMarkdown('a  b\n\nc', 80), 'a  b\n\nc')
})
