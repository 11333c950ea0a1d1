import assert from 'node:assert/strict'
import { test } from 'node:test'
import { renderMarkdown } from './markdown-html.ts'

const asIs = (target: string) => target

test('renders the blocks that the documents use', () => {
  const markdown = [
    '# Title of `code`',
    '',
    '<!-- a comment -->',
    '',
    'One line',
    'and the next with **bold `x`**, *italic* and [a link](other.md#here).',
    '',
    '- first',
    '  continued',
    '- second',
    '',
    '1. one',
    '2. two',
    '',
    '| a | b |',
    '|---|---|',
    '| `x\\|y` | 2 |',
    '',
    '```sh run',
    'echo <"$A"> # no *markup* here',
    '```',
    'after',
  ].join('\n')
  assert.equal(
    renderMarkdown(markdown, asIs),
    [
      '<h1 id="title-of-code">Title of <code>code</code></h1>',
      '<p>One line\nand the next with <strong>bold <code>x</code></strong>, <em>italic</em> and <a href="other.md#here">a link</a>.</p>',
      '<ul>\n<li>first\ncontinued</li>\n<li>second</li>\n</ul>',
      '<ol>\n<li>one</li>\n<li>two</li>\n</ol>',
      '<div class="table"><table><thead><tr><th>a</th><th>b</th></tr></thead><tbody>\n<tr><td><code>x|y</code></td><td>2</td></tr>\n</tbody></table></div>',
      '<pre><code>echo &lt;&quot;$A&quot;&gt; # no *markup* here</code></pre>',
      '<p>after</p>',
    ].join('\n'),
  )
})

test('escapes HTML, also in titles, links and code', () => {
  const html = renderMarkdown('# <b>\n\n<script>alert(1)</script> `<i>` [<u>](x"y)', asIs)
  assert.equal(
    html,
    '<h1 id="b">&lt;b&gt;</h1>\n<p>&lt;script&gt;alert(1)&lt;/script&gt; <code>&lt;i&gt;</code> <a href="x&quot;y">&lt;u&gt;</a></p>',
  )
})

test('a link without a target is its text, and equal headings have different anchors', () => {
  assert.equal(
    renderMarkdown('[gone](gone.md)', () => undefined),
    '<p>gone</p>',
  )
  assert.match(renderMarkdown('## A b!\n\n## A b', asIs), /id="a-b">A b!.*id="a-b-1">/s)
})

test('a fence or a list that the text does not close ends with the text', () => {
  assert.equal(renderMarkdown('```\nx', asIs), '<pre><code>x</code></pre>')
  assert.equal(renderMarkdown('- x', asIs), '<ul>\n<li>x</li>\n</ul>')
})
