"""Run by QGIS's own Python: reads a layer, prints what it saw as JSON. Arguments: data source, and a box or nothing."""

import json
import sys

from qgis.core import QgsApplication, QgsFeatureRequest, QgsRectangle, QgsVectorLayer, QgsWkbTypes

source, *box = sys.argv[1:]
application = QgsApplication([], False)
application.initQgis()
layer = QgsVectorLayer(source, "layer", "OAPIF")
seen = {"valid": layer.isValid(), "error": layer.error().message()}
if layer.isValid():
    request = QgsFeatureRequest()
    if box:
        request.setFilterRect(QgsRectangle(*map(float, box)))
    features = list(layer.getFeatures(request))
    names = [field.name() for field in layer.fields()]
    seen["count"] = layer.featureCount()
    seen["crs"] = layer.crs().authid()
    seen["types"] = {field.name(): field.typeName() for field in layer.fields()}
    seen["shapes"] = sorted({QgsWkbTypes.displayString(one.geometry().wkbType()) for one in features})
    seen["rows"] = [
        {name: None if str(value) == "NULL" else value for name, value in zip(names, one.attributes(), strict=False)}
        for one in features
    ]
sys.stdout.write("\n" + json.dumps(seen) + "\n")
sys.stdout.flush()
del layer
application.exitQgis()
