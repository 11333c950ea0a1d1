import Graph from 'graphology'
import forceAtlas2 from 'graphology-layout-forceatlas2'
import Sigma from 'sigma'
import type { Colours } from '../../../ui/colours.ts'
import { shortHex } from '../../../ui/safe-text.ts'
import type { ContractGraph } from '../../model/contract-graph.ts'
import { type Box, freePosition, outside, positionsBeside } from '../../model/label-places.ts'

export type GraphCanvas = {
  show(graph: ContractGraph, look: { colours: Colours; labels: ReadonlyMap<string, string> }): void
  close(): void
}

const FIRST_STEPS = 150
const LATER_STEPS = 12
const NODE_SIZE = { min: 4, max: 15 }
const EDGE_SIZE = { min: 0.6, max: 5 }
const LABEL_CHARACTERS_MAX = 18
const STRETCH_MAX = 1.9
/** Share of the width for the graph; the rest is for labels at the right. */
const GRAPH_WIDTH_SHARE = 0.85

/** Undefined where the browser has no WebGL. */
export function openGraphCanvas(parent: HTMLElement, onOpen: (address: string) => void): GraphCanvas | undefined {
  const graph = new Graph({ type: 'undirected' })
  const sigma = makeSigma(graph, parent)
  if (sigma === undefined) return undefined
  let look: { colours: Colours } | undefined
  let stretch = 1
  sigma.setSetting('nodeReducer', (_node, data) => ({ ...data, x: Number(data['x']) * stretch }))
  for (const [setting, isHovered] of [
    ['defaultDrawNodeLabel', false],
    ['defaultDrawNodeHover', true],
  ] as const) {
    sigma.setSetting(setting, (context, data, { labelFont, labelSize }) => {
      if (look === undefined || data.label == null) return
      if (isHovered) drawRing(context, data, look.colours)
      context.font = `${labelSize}px ${labelFont}`
      const size = { width: context.measureText(data.label).width, height: labelSize }
      taken ??= [...graph.nodes().map((node) => boxOf(sigma, node)), ...outside(parent)]
      const position = freePosition(data, size, taken) ?? (isHovered ? positionsBeside(data, size)[0] : undefined)
      if (position === undefined) return
      taken.push(position)
      drawLabel(context, data.label, position, look.colours)
    })
  }
  // Boxes that labels must not overlap: the nodes as drawn now, and labels drawn before.
  let taken: Box[] | undefined
  sigma.on('beforeRender', () => {
    taken = undefined
  })
  sigma.on('clickNode', ({ node }) => onOpen(node))
  sigma.on('enterNode', () => (parent.style.cursor = 'pointer'))
  sigma.on('leaveNode', () => (parent.style.cursor = 'default'))

  return {
    show({ nodes, links }, { colours, labels }) {
      look = { colours }
      const isFirst = graph.order === 0
      sigma.setSetting('labelColor', { color: colours.text })
      sigma.setSetting('defaultEdgeColor', colours.link)
      const kept = new Set(nodes.map(({ address }) => address))
      for (const node of graph.nodes()) if (!kept.has(node)) graph.dropNode(node)
      const busiest = Math.max(1, ...nodes.map(({ accesses }) => accesses))
      for (const { address, score, accesses } of nodes) {
        const drawn = {
          label: shortLabel(labels.get(address) ?? shortHex(address)),
          size: scale(accesses / busiest, NODE_SIZE),
          color: colours.node[Math.min(4, Math.floor(score * 5))] ?? colours.line,
        }
        // The initial position is derived from the address, so that the same contracts give the same layout.
        if (graph.hasNode(address)) graph.mergeNodeAttributes(address, drawn)
        else graph.addNode(address, { ...drawn, ...positionOf(address) })
      }
      const strongest = Math.max(1, ...links.map(({ sharedTxns }) => sharedTxns))
      graph.clearEdges()
      for (const { a, b, sharedTxns } of links) {
        graph.mergeEdge(a, b, { size: scale(sharedTxns / strongest, EDGE_SIZE), weight: sharedTxns })
      }
      if (graph.order > 1) {
        const settings = { ...forceAtlas2.inferSettings(graph), gravity: 1.5, scalingRatio: 8, adjustSizes: true }
        forceAtlas2.assign(graph, { iterations: isFirst ? FIRST_STEPS : LATER_STEPS, settings })
      }
      const extent = extentOf(graph)
      stretch = stretchOf(extent, parent)
      const [left, right] = extent.x
      sigma.setCustomBBox({ x: [left * stretch, right * stretch], y: extent.y })
      sigma.refresh()
    },
    close: () => sigma.kill(),
  }
}

function makeSigma(graph: Graph, parent: HTMLElement): Sigma | undefined {
  try {
    return new Sigma(graph, parent, {
      allowInvalidContainer: true,
      labelFont: 'ui-monospace, monospace',
      labelSize: 11,
      labelRenderedSizeThreshold: 5.5,
      labelDensity: 4,
      labelGridCellSize: 60,
      renderEdgeLabels: false,
      enableCameraZooming: false,
      stagePadding: 14,
    })
  } catch {
    return undefined
  }
}

type Drawn = { x: number; y: number; size: number; label?: string | null }

function drawRing(context: CanvasRenderingContext2D, { x, y, size }: Drawn, colours: Colours): void {
  context.beginPath()
  context.arc(x, y, size + 2, 0, 2 * Math.PI)
  context.strokeStyle = colours.text
  context.lineWidth = 1.5
  context.stroke()
}

/** With an outline in the colour of the panel, so that it is readable over lines. */
function drawLabel(context: CanvasRenderingContext2D, label: string, { left, bottom }: Box, colours: Colours): void {
  context.lineJoin = 'round'
  context.lineWidth = 4
  context.strokeStyle = colours.panel
  context.strokeText(label, left, bottom - 2)
  context.fillStyle = colours.text
  context.fillText(label, left, bottom - 2)
}

/** A name may have 64 characters; there is room for fewer beside a node. */
function shortLabel(label: string): string {
  const characters = Array.from(label)
  return characters.length <= LABEL_CHARACTERS_MAX
    ? label
    : `${characters.slice(0, LABEL_CHARACTERS_MAX - 1).join('')}…`
}

/** The box of a node as drawn. */
function boxOf(sigma: Sigma, node: string): Box {
  const shown = sigma.getNodeDisplayData(node)
  if (shown === undefined) return { left: 0, right: 0, top: 0, bottom: 0 }
  const { x, y } = sigma.framedGraphToViewport(shown)
  const radius = sigma.scaleSize(shown.size)
  return { left: x - radius, right: x + radius, top: y - radius, bottom: y + radius }
}

type Extent = { x: [number, number]; y: [number, number] }

function extentOf(graph: Graph): Extent {
  const extent: Extent = { x: [0, 0], y: [0, 0] }
  graph.forEachNode((_node, at) => {
    for (const axis of ['x', 'y'] as const) {
      const value = Number(at[axis])
      extent[axis] = [Math.min(extent[axis][0], value), Math.max(extent[axis][1], value)]
    }
  })
  return extent
}

/** The layout is about square, the canvas is wider: stretching gives labels more room. */
function stretchOf({ x, y }: Extent, { clientWidth, clientHeight }: HTMLElement): number {
  const ratio = (x[1] - x[0]) / (y[1] - y[0] || 1)
  const full = clientWidth / Math.max(1, clientHeight) / (ratio || 1)
  return Math.max(1, Math.min(STRETCH_MAX, full * GRAPH_WIDTH_SHARE))
}

function scale(share: number, { min, max }: { min: number; max: number }): number {
  return min + Math.sqrt(Math.max(0, share)) * (max - min)
}

/** FNV-1a over the address, folded to a point of a circle. */
function positionOf(address: string): { x: number; y: number } {
  let hash = 0x811c9dc5
  for (let at = 0; at < address.length; at++) hash = Math.imul(hash ^ address.charCodeAt(at), 0x01000193) >>> 0
  const angle = (hash / 2 ** 32) * 2 * Math.PI
  const radius = 40 + (hash % 61)
  return { x: Math.cos(angle) * radius, y: Math.sin(angle) * radius }
}
