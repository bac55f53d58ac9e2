import json

from django.http import HttpResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST


@csrf_exempt
@require_POST
def work(request):
    headers = {name.lower(): value for name, value in request.headers.items()}
    print('seen', json.dumps({'path': request.path, 'body': request.body.decode(), 'headers': headers}), flush=True)
    return HttpResponse(status=200)


urlpatterns = [path('worker/', work), path('worker/cleanup/', work)]
