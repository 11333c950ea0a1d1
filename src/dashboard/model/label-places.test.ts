import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Box, freePosition, outside, positionsBeside } from './label-places.ts'

const NODE = { x: 100, y: 100, size: 10 }
const SIZE = { width: 40, height: 12 }
const [RIGHT, LEFT, BELOW, ABOVE] = positionsBeside(NODE, SIZE) as [Box, Box, Box, Box]

test('places a label beside its node, on a free side', () => {
  const taken: Box[] = []
  for (const position of [RIGHT, LEFT, BELOW, ABOVE]) {
    assert.deepEqual(freePosition(NODE, SIZE, taken), position)
    taken.push(position)
  }
  assert.equal(freePosition(NODE, SIZE, taken), undefined, 'no name is better than one that covers others')
})

test('positions overlap neither the node nor each other', () => {
  const node = { left: 90, right: 110, top: 90, bottom: 110 }
  for (const position of [RIGHT, LEFT, BELOW, ABOVE])
    assert.ok(
      position.left > node.right ||
        position.right < node.left ||
        position.top > node.bottom ||
        position.bottom < node.top,
      JSON.stringify(position),
    )
})

test('keeps the label inside the canvas', () => {
  const picture = outside({ clientWidth: 200, clientHeight: 200 })
  assert.deepEqual(freePosition({ ...NODE, x: 190 }, SIZE, picture), positionsBeside({ ...NODE, x: 190 }, SIZE)[1])
  assert.equal(freePosition({ x: 5, y: 5, size: 200 }, SIZE, picture), undefined)
})
