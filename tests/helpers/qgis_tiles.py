"""Draws vector tiles with QGIS; run by the system's Python, which has PyQGIS.

Arguments: URL template, picture to write, west, south, east, north (degrees), and layers with a colour each as JSON.
Prints as JSON whether the layer is valid and how many pixels have each colour.
"""

import json
import sys
from collections import Counter
from urllib.parse import quote

from qgis.core import (
    Qgis,
    QgsApplication,
    QgsCoordinateReferenceSystem,
    QgsCoordinateTransform,
    QgsFillSymbol,
    QgsLineSymbol,
    QgsMapRendererSequentialJob,
    QgsMapSettings,
    QgsMarkerSymbol,
    QgsProject,
    QgsRectangle,
    QgsVectorTileBasicRenderer,
    QgsVectorTileBasicRendererStyle,
    QgsVectorTileLayer,
    QgsWkbTypes,
)
from qgis.PyQt.QtCore import QEventLoop, QSize
from qgis.PyQt.QtGui import QColor

KINDS = {
    "points": QgsWkbTypes.PointGeometry,
    "within": QgsWkbTypes.PointGeometry,
    "flows": QgsWkbTypes.LineGeometry,
    "areas": QgsWkbTypes.PolygonGeometry,
}


def style(name, colour):
    """Return a style of one colour without outlines that blur it."""
    kind = KINDS[name]
    if kind == QgsWkbTypes.PointGeometry:
        symbol = QgsMarkerSymbol.createSimple({"color": colour, "size": "2", "outline_style": "no"})
    elif kind == QgsWkbTypes.LineGeometry:
        symbol = QgsLineSymbol.createSimple({"color": colour, "width": "0.4"})
    else:
        symbol = QgsFillSymbol.createSimple({"color": colour, "outline_color": "white", "outline_width": "0.2"})
    found = QgsVectorTileBasicRendererStyle(name, name, kind)
    found.setSymbol(symbol)
    found.setEnabled(True)
    return found


def main(template, picture, west, south, east, north, colours):
    """Draw and report."""
    colours = json.loads(colours)
    layer = QgsVectorTileLayer(f"type=xyz&url={quote(template, safe=':/{}')}&zmin=0&zmax=14", "tiles")
    renderer = QgsVectorTileBasicRenderer()
    renderer.setStyles([style(name, colour) for name, colour in colours.items()])
    layer.setRenderer(renderer)
    settings = QgsMapSettings()
    settings.setLayers([layer])
    settings.setOutputSize(QSize(900, 700))
    settings.setBackgroundColor(QColor("white"))
    settings.setFlag(
        Qgis.MapSettingsFlag.Antialiasing if hasattr(Qgis, "MapSettingsFlag") else QgsMapSettings.Antialiasing, False
    )
    mercator = QgsCoordinateReferenceSystem("EPSG:3857")
    settings.setDestinationCrs(mercator)
    degrees = QgsCoordinateReferenceSystem("EPSG:4326")
    to_mercator = QgsCoordinateTransform(degrees, mercator, QgsProject.instance())
    settings.setExtent(to_mercator.transformBoundingBox(QgsRectangle(*map(float, (west, south, east, north)))))
    job = QgsMapRendererSequentialJob(settings)
    loop = QEventLoop()
    job.finished.connect(loop.quit)
    job.start()
    loop.exec_()
    image = job.renderedImage()
    image.save(picture)
    seen = Counter(image.pixelColor(x, y).name() for x in range(image.width()) for y in range(image.height()))
    found = {"valid": layer.isValid(), "pixels": {name: seen[colour] for name, colour in colours.items()}}
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    application = QgsApplication([], False)
    application.initQgis()
    main(*sys.argv[1:])
    application.exitQgis()
