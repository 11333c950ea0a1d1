import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Box, freePlace, outside, placesBeside } from './label-places.ts'

const NODE = { x: 100, y: 100, size: 10 }
const SIZE = { width: 40, height: 12 }
const [RIGHT, LEFT, BELOW, ABOVE] = placesBeside(NODE, SIZE) as [Box, Box, Box, Box]

test('a name stands beside its node, and goes round it where something is in the way', () => {
  const taken: Box[] = []
  for (const place of [RIGHT, LEFT, BELOW, ABOVE]) {
    assert.deepEqual(freePlace(NODE, SIZE, taken), place)
    taken.push(place)
  }
  assert.equal(freePlace(NODE, SIZE, taken), undefined, 'no name is better than one that covers others')
})

test('places touch neither the node nor each other', () => {
  const node = { left: 90, right: 110, top: 90, bottom: 110 }
  for (const place of [RIGHT, LEFT, BELOW, ABOVE])
    assert.ok(
      place.left > node.right || place.right < node.left || place.top > node.bottom || place.bottom < node.top,
      JSON.stringify(place),
    )
})

test('at the edge of the picture the name is turned inwards', () => {
  const picture = outside({ clientWidth: 200, clientHeight: 200 })
  assert.deepEqual(freePlace({ ...NODE, x: 190 }, SIZE, picture), placesBeside({ ...NODE, x: 190 }, SIZE)[1])
  assert.equal(freePlace({ x: 5, y: 5, size: 200 }, SIZE, picture), undefined)
})
