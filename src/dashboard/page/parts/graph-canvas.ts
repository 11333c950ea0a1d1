import Graph from 'graphology'
import forceAtlas2 from 'graphology-layout-forceatlas2'
import Sigma from 'sigma'
import type { ContractGraph } from '../../model/contract-graph.ts'
import { shortHex } from '../../model/safe-text.ts'
import type { Colours } from '../ui/colours.ts'

export type GraphCanvas = {
  show(graph: ContractGraph, look: { colours: Colours; labels: ReadonlyMap<string, string> }): void
  close(): void
}

const FIRST_STEPS = 150
const LATER_STEPS = 12
const NODE_SIZE = { min: 4, max: 15 }
const EDGE_SIZE = { min: 0.6, max: 5 }

/** Undefined where the browser has no WebGL. */
export function openGraphCanvas(parent: HTMLElement, onOpen: (address: string) => void): GraphCanvas | undefined {
  const graph = new Graph({ type: 'undirected' })
  const sigma = makeSigma(graph, parent)
  if (sigma === undefined) return undefined
  let look: { colours: Colours } | undefined
  sigma.setSetting('defaultDrawNodeHover', (context, data, settings) => {
    if (look !== undefined)
      drawHover(context, data, { font: settings.labelFont, size: settings.labelSize, colours: look.colours })
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
          label: labels.get(address) ?? shortHex(address),
          size: scale(accesses / busiest, NODE_SIZE),
          color: colours.node[Math.min(4, Math.floor(score * 5))] ?? colours.line,
        }
        // A place from the address itself: the same contracts make the same picture.
        if (graph.hasNode(address)) graph.mergeNodeAttributes(address, drawn)
        else graph.addNode(address, { ...drawn, ...placeOf(address) })
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
      labelRenderedSizeThreshold: 7,
      labelDensity: 0.6,
      renderEdgeLabels: false,
      enableCameraZooming: false,
      stagePadding: 14,
    })
  } catch {
    return undefined
  }
}

type Hovered = { x: number; y: number; size: number; label?: string | null }

/** The library's own label stands on white; this one stands on the panel. */
function drawHover(
  context: CanvasRenderingContext2D,
  { x, y, size, label }: Hovered,
  { font, size: textSize, colours }: { font: string; size: number; colours: Colours },
): void {
  context.beginPath()
  context.arc(x, y, size + 2, 0, 2 * Math.PI)
  context.strokeStyle = colours.text
  context.lineWidth = 1.5
  context.stroke()
  if (label == null) return
  context.font = `${textSize}px ${font}`
  const width = context.measureText(label).width
  context.fillStyle = colours.panel
  context.fillRect(x + size + 3, y - textSize, width + 8, textSize * 2)
  context.fillStyle = colours.text
  context.fillText(label, x + size + 7, y + textSize / 3)
}

function scale(share: number, { min, max }: { min: number; max: number }): number {
  return min + Math.sqrt(Math.max(0, share)) * (max - min)
}

/** FNV-1a over the address, folded to a point of a circle. */
function placeOf(address: string): { x: number; y: number } {
  let hash = 0x811c9dc5
  for (let at = 0; at < address.length; at++) hash = Math.imul(hash ^ address.charCodeAt(at), 0x01000193) >>> 0
  const angle = (hash / 2 ** 32) * 2 * Math.PI
  const radius = 40 + (hash % 61)
  return { x: Math.cos(angle) * radius, y: Math.sin(angle) * radius }
}
